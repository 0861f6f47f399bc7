#include "evaluator/build.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include "base/file.h"
#include "evaluator/candidate.h"
#include "evaluator/inspect.h"

namespace ks::evaluator {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kPlain =
    "// kernelseek: operator=rmsnorm\n"
    "#include \"rmsnorm.h\"\n"
    "extern \"C\" ks_status ks_sizes(const ks_rmsnorm_shape*, ks_buffer_sizes*) { return KS_OK; }\n"
    "extern \"C\" ks_status ks_plan(const ks_rmsnorm_shape*, void*) { return KS_OK; }\n"
    "extern \"C\" ks_status ks_run(const ks_rmsnorm_call*) { return KS_OK; }\n";

/// A folder for candidates, and a cache of its own.
class BuildTest : public ::testing::Test {
 protected:
  BuildTest() { ::setenv("KERNELSEEK_CACHE", (folder_.path() / "cache").c_str(), 1); }
  ~BuildTest() override { ::unsetenv("KERNELSEEK_CACHE"); }
  std::string put(const std::string& name, const std::string& text) {
    const auto path = folder_.path() / name;
    base::make_folder(path.parent_path());
    base::write_file_atomically(path, text);
    return path.string();
  }
  static Build build(const std::string& path) { return build_candidate(load_candidate(path, ""), "cpu", 2); }
  Inspection inspect(const std::string& path) {
    const Build built = build(path);
    EXPECT_TRUE(built.ok) << built.log;
    return inspect_binary(built.shared_object, load_candidate(path, ""));
  }
  /// What inspection says of the plain candidate with `code` added.
  std::string refusal_of(const std::string& code) { return inspect(put("x.cpp", kPlain + code)).reason; }
  std::string folder() const { return folder_.path().string(); }

 private:
  base::TempFolder folder_;
};

TEST_F(BuildTest, MakesALibraryThatCarriesTheHashOfItsSources) {
  const Build first = build(put("a.cpp", kPlain));
  ASSERT_TRUE(first.ok) << first.log;
  EXPECT_FALSE(first.cached);
  EXPECT_THAT(base::read_file(first.shared_object), HasSubstr(first.hash));
  EXPECT_THAT(first.compiler, HasSubstr("g++"));
  EXPECT_GT(first.seconds, 0);
}

TEST_F(BuildTest, TakesTheSecondBuildFromTheCache) {
  const Build first = build(put("a.cpp", kPlain));
  const Build second = build(put("a.cpp", kPlain));
  EXPECT_TRUE(second.cached);
  EXPECT_EQ(first.shared_object, second.shared_object);
  EXPECT_EQ(first.hash, second.hash);
}

TEST_F(BuildTest, BuildsAnewWhereTheCachedLibraryIsNotWhatWasKept) {
  const Build first = build(put("a.cpp", kPlain));
  base::write_file_atomically(first.shared_object, base::read_file(first.shared_object) + "x");
  EXPECT_FALSE(build(put("a.cpp", kPlain)).cached);
}

TEST_F(BuildTest, NoticesAChangeInAnIncludedFileAndInTheFlags) {
  const std::string source = std::string(kPlain) + "#include \"deep/one.h\"\n";
  put("deep/two.h", "// two\n");
  put("deep/one.h", "#include \"two.h\"\n");
  const std::string hash = build(put("a.cpp", source)).hash;
  put("deep/two.h", "// changed\n");
  const std::string changed = build(put("a.cpp", source)).hash;
  EXPECT_NE(hash, changed);
  put("f/a.cpp", kPlain);
  put("f/candidate.toml", "operator = \"rmsnorm\"\nsources = [\"a.cpp\"]\n");
  const std::string plain = build(folder() + "/f").hash;
  put("f/candidate.toml", "operator = \"rmsnorm\"\nsources = [\"a.cpp\"]\nflags = [\"-O1\"]\n");
  EXPECT_NE(plain, build(folder() + "/f").hash);
}

TEST_F(BuildTest, RefusesAFileThatTheHashDoesNotSee) {
  put("hidden.h", "// hidden\n");
  const Build built = build(put("a.cpp", std::string(kPlain) + "#define NAME \"hidden.h\"\n#include NAME\n"));
  EXPECT_FALSE(built.ok);
  EXPECT_THAT(built.log, HasSubstr("hidden.h is included in a way that the source hash does not see"));
}

TEST_F(BuildTest, LinksSourcesThatWereCompiledByThemselves) {
  put("f/a.cpp", std::string(kPlain) + "int other();\nint use() { return other(); }\n");
  put("f/b.cpp", "#include \"rmsnorm.h\"\nint other() { return 1; }\n");
  put("f/candidate.toml", "operator = \"rmsnorm\"\nsources = [\"*.cpp\"]\n");
  const Build built = build(folder() + "/f");
  EXPECT_TRUE(built.ok) << built.log;
}

TEST_F(BuildTest, ShowsTheFirstErrorWithThePathAsGiven) {
  const std::string path = put("broken.cpp", std::string(kPlain) + "int f() { return absent; }\n");
  const Build built = build(path);
  EXPECT_FALSE(built.ok);
  EXPECT_THAT(built.log, HasSubstr(path + ":6"));
  EXPECT_THAT(built.log, HasSubstr("absent"));
}

TEST_F(BuildTest, ACandidateOfAnotherDeviceIsAnError) {
  const auto candidate = load_candidate(put("a.cu", kPlain), "");
  EXPECT_THROW(build_candidate(candidate, "cpu", 1), Error);
}

TEST(FirstErrors, BeginAtTheFirstErrorAndCountTheRest) {
  std::string text = "note one\nIn file included from a.cpp:1:\nb.h:2: error: one\n";
  for (int i = 0; i < 100; ++i) text += "more\n";
  const std::string shown = first_errors(text, 5);
  EXPECT_TRUE(shown.starts_with("In file included"));
  EXPECT_THAT(shown, HasSubstr("(97 more lines)"));
}

TEST(Ptxas, IsReadAsFiguresOfEachKernel) {
  const auto kernels = parse_ptxas(
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Compiling entry function '_Z3onePf' for 'sm_90a'\n"
      "ptxas info    : Function properties for _Z3onePf\n"
      "    16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads\n"
      "ptxas info    : Used 168 registers, used 1 barriers, 16 bytes cumulative stack size, 1024 bytes smem\n"
      "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized due to "
      "insufficient "
      "register resources for the wgmma pipeline in the function '_Z3twov'\n");
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_EQ(kernels[0].name, "_Z3onePf");
  EXPECT_EQ(kernels[0].arch, "sm_90a");
  EXPECT_EQ(kernels[0].registers, 168);
  EXPECT_EQ(kernels[0].spill_store_bytes, 8);
  EXPECT_EQ(kernels[0].spill_load_bytes, 12);
  EXPECT_EQ(kernels[0].stack_bytes, 16);
  EXPECT_EQ(kernels[0].smem_bytes, 1024);
  EXPECT_EQ(kernels[0].wgmma_serialized, "");
  EXPECT_THAT(kernels[1].wgmma_serialized, HasSubstr("insufficient register resources"));
}

TEST_F(BuildTest, InspectionLetsOrdinaryCodeThrough) {
  const auto inspection =
      inspect(put("a.cpp", std::string(kPlain) +
                               "#include <iostream>\n#include <map>\n#include <thread>\nstd::map<int, int> table;\n"));
  EXPECT_FALSE(inspection.refused) << inspection.reason;
}

TEST_F(BuildTest, InspectionRefusesWhatNoKernelNeeds) {
  const std::string use = "extern \"C\" KS_EXPORT ks_status ks_plan_lengths(const ks_rmsnorm_call*) { ";
  EXPECT_THAT(refusal_of("#include <unistd.h>\n" + use + "return fork(); }\n"), HasSubstr("imports fork"));
  EXPECT_THAT(refusal_of("#include <sys/socket.h>\n" + use + "return socket(2, 1, 0); }\n"),
              HasSubstr("imports socket"));
  EXPECT_THAT(refusal_of("#include <dlfcn.h>\n" + use + "return dlopen(\"x\", 1) != 0; }\n"),
              HasSubstr("imports dlopen"));
  EXPECT_THAT(refusal_of("#include <cstdlib>\n" + use + "return std::system(\"x\"); }\n"), HasSubstr("imports system"));
  EXPECT_THAT(refusal_of(use + "int r = 39; asm volatile(\"syscall\" : \"+a\"(r)::\"rcx\", \"r11\"); return r; }\n"),
              HasSubstr("system calls by itself"));
  EXPECT_THAT(refusal_of("extern \"C\" KS_EXPORT void* malloc(unsigned long) { return 0; }\n"),
              HasSubstr("exports malloc"));
  EXPECT_THAT(refusal_of("extern \"C\" KS_EXPORT int ks_verdict() { return 0; }\n"), HasSubstr("exports ks_verdict"));
  EXPECT_THAT(refusal_of("extern \"C\" KS_EXPORT const char* const text = \"see dnnl_primitive_create\";\n"),
              HasSubstr("oneDNN"));
  EXPECT_THAT(refusal_of("extern \"C\" int f() { return 1; }\nextern \"C\" { static int (*choose())() { return f; } }\n"
                         "extern \"C\" KS_EXPORT int chosen() __attribute__((ifunc(\"choose\")));\n"),
              HasSubstr("chosen by code that runs"));
}

TEST_F(BuildTest, InspectionNamesAMissingFunction) {
  const auto inspection = inspect(put("a.cpp", "// kernelseek: operator=rmsnorm\n#include \"rmsnorm.h\"\n"));
  EXPECT_TRUE(inspection.refused);
  EXPECT_THAT(inspection.reason, HasSubstr("does not export ks_sizes"));
}

TEST_F(BuildTest, InspectionRefusesAnExecutableStack) {
  put("f/a.cpp", kPlain);
  put("f/candidate.toml", "operator = \"rmsnorm\"\nsources = [\"a.cpp\"]\nflags = [\"-Wl,-z,execstack\"]\n");
  EXPECT_THAT(inspect(folder() + "/f").reason, HasSubstr("executable stack"));
}

TEST_F(BuildTest, InspectionLooksForPromisedInstructions) {
  put("f/a.cpp", kPlain);
  put("f/candidate.toml", "operator = \"rmsnorm\"\nsources = [\"a.cpp\"]\nexpect_instructions = [\"ret\"]\n");
  EXPECT_FALSE(inspect(folder() + "/f").refused);
  put("f/candidate.toml", "operator = \"rmsnorm\"\nsources = [\"a.cpp\"]\nexpect_instructions = [\"vdpbf16ps\"]\n");
  EXPECT_THAT(inspect(folder() + "/f").reason, HasSubstr("no vdpbf16ps instruction"));
}

}  // namespace
}  // namespace ks::evaluator
