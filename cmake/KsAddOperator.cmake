# ks_add_operator(NAME)
# One folder of operators/ is one shared library lib/operators/libks_operator_NAME.so of every *.cc but *_test.cc, which
# the oracle loads at run time: it exports ks_operator and ks_operator_interface_version and nothing else, and carries
# its own copies of base, core and the operator support. The tests become one executable ks_operator_NAME_test.
function(ks_add_operator name)
  file(GLOB sources CONFIGURE_DEPENDS *.cc)
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  set(objects ks_operator_${name}_objects)
  add_library(${objects} OBJECT ${sources})
  ks_target_defaults(${objects})
  # References are arithmetic on many rows: without any optimisation the tests of a debug build would take minutes.
  target_compile_options(${objects} PRIVATE $<$<CONFIG:Debug>:-O1>)
  set_target_properties(${objects} PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  target_link_libraries(${objects} PUBLIC ks_operator_support)

  add_library(ks_operator_${name} SHARED $<TARGET_OBJECTS:${objects}>)
  ks_target_defaults(ks_operator_${name})
  set_target_properties(ks_operator_${name} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib/operators)
  target_link_libraries(ks_operator_${name} PRIVATE ks_operator_support)
  target_link_options(ks_operator_${name} PRIVATE -Wl,--exclude-libs,ALL)
  set_property(GLOBAL APPEND PROPERTY KS_OPERATORS ks_operator_${name})

  if(tests)
    add_executable(ks_operator_${name}_test ${tests} $<TARGET_OBJECTS:${objects}>)
    ks_target_defaults(ks_operator_${name}_test)
    target_compile_options(ks_operator_${name}_test PRIVATE $<$<CONFIG:Debug>:-O1>)
    target_link_libraries(ks_operator_${name}_test PRIVATE ks_operator_support GTest::gmock GTest::gtest_main)
    add_test(NAME operator_${name} COMMAND ks_operator_${name}_test)
    set_tests_properties(operator_${name} PROPERTIES LABELS fast TIMEOUT 600)
  endif()
endfunction()
