// The worker's protocol, spoken to the real program with a real shared object that the test compiles.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "base/file.h"
#include "base/subprocess.h"
#include "kernelseek.h"

namespace ks::worker {
namespace {

using ::testing::HasSubstr;

/// A shape and a call of our own: two arrays and a factor.
constexpr const char* kAbi = R"(
#include "kernelseek.h"
struct Shape { ks_header header; int32_t count; float factor; };
struct Call { ks_context context; const float* input; float* output; };
extern "C" KS_EXPORT ks_status ks_sizes(const Shape* shape, ks_buffer_sizes* sizes) {
  *sizes = {};
  sizes->scratch_bytes = 64;
  return shape->count < 0 ? KS_UNSUPPORTED : KS_OK;
}
extern "C" KS_EXPORT ks_status ks_plan(const Shape* shape, void* plan) {
  *static_cast<float*>(plan) = shape->factor;
  return KS_OK;
}
)";
constexpr const char* kRun = R"(
extern "C" KS_EXPORT ks_status ks_run(const Call* call) {
  const auto* shape = static_cast<const Shape*>(call->context.shape);
  const float factor = *static_cast<const float*>(call->context.plan);
  if (call->context.threads != 2 || call->context.scratch == nullptr || call->context.state != nullptr) return KS_FAILED;
  for (int i = 0; i < shape->count; ++i) call->output[i] = factor * call->input[i];
  return KS_OK;
}
)";
struct Shape {
  ks_header header;
  int32_t count;
  float factor;
};
struct Call {
  ks_context context;
  const float* input;
  float* output;
};

std::string hex(const void* data, size_t bytes) {
  std::string text;
  for (size_t i = 0; i < bytes; ++i) text += fmt::format("{:02x}", static_cast<const unsigned char*>(data)[i]);
  return text;
}

/// Shared memory as the evaluator grants it.
class Arena {
 public:
  explicit Arena(size_t bytes) : bytes_(bytes), fd_(::memfd_create("test", MFD_CLOEXEC)) {
    KS_CHECK(::ftruncate(fd_, static_cast<off_t>(bytes)) == 0, "memory for a test");
    data_ = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  }
  ~Arena() {
    ::munmap(data_, bytes_);
    ::close(fd_);
  }
  int fd() const { return fd_; }
  float* floats() const { return static_cast<float*>(data_); }

 private:
  size_t bytes_;
  int fd_;
  void* data_ = nullptr;
};

class WorkerTest : public ::testing::Test {
 protected:
  /// Compiles a candidate; `version` false leaves out what the header defines with a hash.
  std::string compile(const std::string& code, bool version = true) {
    const auto source = folder_.path() / "candidate.cc";
    base::write_file_atomically(source, code);
    const auto library = folder_.path() / fmt::format("candidate{}.so", ++count_);
    base::SpawnOptions options;
    options.argv = {"g++",           "-std=c++20", "-shared",       "-fPIC", "-I" KS_SOURCE_DIR "/abi",
                    source.string(), "-o",         library.string()};
    if (version) options.argv.push_back("-DKS_SOURCE_HASH=\"abc123\"");
    const auto result = base::run_process(options);
    EXPECT_TRUE(result.ok()) << result.err;
    return library.string();
  }
  void start() {
    base::SpawnOptions options;
    options.argv = {(base::executable_folder() / "kernelseek-worker").string()};
    child_ = std::make_unique<base::Child>(options);
  }
  /// The answer; an object without `ok` if the worker is gone.
  Json ask(const Json& request, const std::vector<int>& fds = {}) {
    if (!child_->channel().send(request, fds)) return Json::object();
    auto message = child_->channel().receive(20);
    if (!message) return Json::object();
    for (const int fd : message->fds) ::close(fd);
    return message->body;
  }
  Json load(const std::string& library) {
    start();
    return ask({{"do", "load"}, {"library", library}, {"device", "cpu"}, {"ordinal", 0}, {"threads", 2}});
  }
  Json shape(int32_t count, float factor) {
    const Shape the_shape{{KS_ABI_VERSION, sizeof(Shape)}, count, factor};
    const Call call{};
    const auto bytes = static_cast<uint64_t>(std::max(count, 0)) * 4;
    return ask({{"do", "shape"},
                {"scenario", Json::object()},
                {"shape", hex(&the_shape, sizeof the_shape)},
                {"call", hex(&call, sizeof call)},
                {"tensors",
                 {{{"name", "input"}, {"bytes", bytes}, {"slots", {{offsetof(Call, input), 0}}}},
                  {{"name", "output"}, {"bytes", bytes}, {"slots", {{offsetof(Call, output), 0}}}}}}});
  }
  /// Maps an input and an output arena and two sets in them.
  void map(const Arena& input, const Arena& output) {
    const Json arenas = {{{"bytes", 8192}, {"writable", false}}, {{"bytes", 8192}, {"writable", true}}};
    ASSERT_EQ(ask({{"do", "map"}, {"arenas", arenas}}, {input.fd(), output.fd()})["ok"], true);
    Json sets = Json::array();
    for (const int offset : {0, 1024})
      sets.push_back(
          {{"tensors", {{0, offset}, {1, offset}}}, {"scratch", {1, 4096}}, {"state", nullptr}, {"schedule", nullptr}});
    ASSERT_EQ(ask({{"do", "sets"}, {"sets", sets}})["ok"], true);
  }
  base::Child& child() { return *child_; }

 private:
  base::TempFolder folder_;
  std::unique_ptr<base::Child> child_;
  int count_ = 0;
};

TEST_F(WorkerTest, RunsACandidateOnSharedMemoryFromLoadToQuit) {
  const Json loaded = load(compile(std::string(kAbi) + kRun));
  ASSERT_EQ(loaded["ok"], true) << loaded.dump();
  EXPECT_EQ(loaded["source_hash"], "abc123");
  EXPECT_EQ(loaded["abi_version"], 1);
  EXPECT_EQ(loaded["has_plan_lengths"], false);
  const Json sealed = ask({{"do", "seal"}});
  EXPECT_EQ(sealed["protections"]["call_filter"], true) << sealed.dump();
  EXPECT_EQ(sealed["protections"]["no_files"], true);

  const Json shaped = shape(4, 3.0f);
  ASSERT_EQ(shaped["ok"], true) << shaped.dump();
  EXPECT_EQ(shaped["supported"], true);
  EXPECT_EQ(shaped["scratch_bytes"], 64);

  const Arena input(8192), output(8192);
  for (int i = 0; i < 4; ++i) input.floats()[i] = input.floats()[256 + i] = static_cast<float>(i + 1);
  map(input, output);
  const Json ran = ask({{"do", "run"}, {"sets", {1, 0}}, {"mode", "eager"}});
  ASSERT_EQ(ran["ok"], true) << ran.dump();
  EXPECT_EQ(ran["status"], 0);
  EXPECT_GE(ran["end_ns"].get<int64_t>(), ran["begin_ns"].get<int64_t>());
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(output.floats()[i], 3.0f * static_cast<float>(i + 1));
    EXPECT_EQ(output.floats()[256 + i], 3.0f * static_cast<float>(i + 1));
  }
  EXPECT_EQ(ask({{"do", "unmap"}})["ok"], true);
  EXPECT_EQ(ask({{"do", "quit"}})["ok"], true);
}

TEST_F(WorkerTest, PlansForLengthsBeforeEachCallOrAlone) {
  const char* plan =
      "extern \"C\" KS_EXPORT ks_status ks_plan_lengths(const Call* call) { "
      "*static_cast<float*>(call->context.scratch) = call->input[0] + 100; return KS_OK; }"
      "extern \"C\" KS_EXPORT ks_status ks_run(const Call* call) { "
      "call->output[0] = *static_cast<const float*>(call->context.scratch); return KS_OK; }";
  EXPECT_EQ(load(compile(std::string(kAbi) + plan))["has_plan_lengths"], true);
  shape(4, 2.0f);
  const Arena input(8192), output(8192);
  input.floats()[0] = 1;
  input.floats()[256] = 2;
  map(input, output);
  EXPECT_EQ(ask({{"do", "run"}, {"sets", {0, 1}}, {"phase", "both"}})["status"], 0);
  EXPECT_EQ(output.floats()[0], 101.0f);
  EXPECT_EQ(output.floats()[256], 102.0f);
  EXPECT_EQ(ask({{"do", "run"}, {"sets", {0}}, {"phase", "plan"}})["status"], 0);
  EXPECT_EQ(output.floats()[0], 101.0f);  // nothing ran
  EXPECT_EQ(ask({{"do", "run"}, {"sets", {1}}})["status"], 0);
  EXPECT_EQ(output.floats()[256], 101.0f);  // the plan of the set before
  EXPECT_THAT(ask({{"do", "run"}, {"sets", {0}}, {"phase", "warm"}})["error"], HasSubstr("phase"));
}

TEST_F(WorkerTest, MapsTheSameShapeAnew) {
  load(compile(std::string(kAbi) + kRun));
  shape(4, 2.0f);
  const Arena input(8192), output(8192), other(8192);
  input.floats()[0] = 5;
  map(input, output);
  ask({{"do", "unmap"}});
  EXPECT_EQ(ask({{"do", "run"}, {"sets", {0}}})["ok"], false);
  map(input, other);
  EXPECT_EQ(ask({{"do", "run"}, {"sets", {0}}})["status"], 0);
  EXPECT_EQ(other.floats()[0], 10.0f);
  EXPECT_EQ(output.floats()[0], 0.0f);
}

TEST_F(WorkerTest, InputsAreReadOnly) {
  load(compile(std::string(kAbi) + "extern \"C\" KS_EXPORT ks_status ks_run(const Call* call) { "
                                   "*const_cast<float*>(call->input) = 1; return KS_OK; }"));
  shape(4, 2.0f);
  const Arena input(8192), output(8192);
  map(input, output);
  EXPECT_FALSE(ask({{"do", "run"}, {"sets", {0}}}).contains("ok"));
  for (int i = 0; i < 200 && child().alive(); ++i) ::usleep(10000);
  const auto status = child().status();
  ASSERT_TRUE(status.has_value());
  EXPECT_EQ(WTERMSIG(*status), SIGSEGV);
}

TEST_F(WorkerTest, NamesTheSymbolThatIsMissing) {
  EXPECT_THAT(load(compile(kAbi))["error"], HasSubstr("does not export ks_run; define it"));
  EXPECT_THAT(load(compile(std::string(kAbi) + kRun, false))["error"],
              HasSubstr("does not export ks_abi_version; include"));
  EXPECT_THAT(load("/nowhere/candidate.so")["error"], HasSubstr("/nowhere/candidate.so"));
}

TEST_F(WorkerTest, RefusesAnotherAbiVersionByNumber) {
  const std::string library = compile(
      "extern \"C\" {\n#define X __attribute__((visibility(\"default\")))\n"
      "X extern const unsigned ks_abi_version = 7; X extern const char ks_source_hash[] = \"x\";\n"
      "X int ks_sizes() { return 0; } X int ks_plan() { return 0; } X int ks_run() { return 0; } }\n");
  EXPECT_THAT(load(library)["error"], HasSubstr("version 7 of the ABI, this is version 1"));
  EXPECT_THAT(shape(1, 1)["error"], HasSubstr("version 7"));  // whoever asks again hears why
}

TEST_F(WorkerTest, SaysThatAShapeIsNotSupported) {
  load(compile(std::string(kAbi) + kRun));
  const Json shaped = shape(-1, 1);
  EXPECT_EQ(shaped["ok"], true);
  EXPECT_EQ(shaped["supported"], false);
  EXPECT_THAT(shaped["reason"], HasSubstr("ks_sizes says that this shape is not supported"));
}

TEST_F(WorkerTest, StaysUsableAfterARequestThatMakesNoSense) {
  load(compile(std::string(kAbi) + kRun));
  EXPECT_THAT(ask({{"do", "dance"}})["error"], HasSubstr("unknown \"do\": \"dance\""));
  EXPECT_THAT(ask({{"nothing", 1}})["error"], HasSubstr("\"do\" is missing"));
  EXPECT_THAT(ask({{"do", "map"}, {"arenas", Json::array()}})["error"], HasSubstr("shape comes first"));
  ASSERT_EQ(shape(4, 1)["ok"], true);
  EXPECT_THAT(ask({{"do", "run"}, {"sets", {0}}})["error"], HasSubstr("there is no set 0"));
  const Arena input(8192), output(8192);
  map(input, output);
  const Json past_the_end = {{{"tensors", {{0, 8190}, {1, 0}}}, {"scratch", {1, 4096}}}};
  EXPECT_THAT(ask({{"do", "sets"}, {"sets", past_the_end}})["error"], HasSubstr("do not lie in arena 0"));
  EXPECT_EQ(ask({{"do", "run"}, {"sets", Json::array()}})["ok"], true);
}

TEST_F(WorkerTest, ConstructorsRunConfined) {
  const Json answer =
      load(compile("#include <sys/socket.h>\n" + std::string(kAbi) + kRun +
                   "static const int early = socket(AF_INET, SOCK_STREAM, 0);\nint use() { return early; }\n"));
  EXPECT_FALSE(answer.contains("ok"));
  for (int i = 0; i < 200 && child().alive(); ++i) ::usleep(10000);
  const auto status = child().status();
  ASSERT_TRUE(status.has_value());
  EXPECT_EQ(WTERMSIG(*status), SIGSYS);
}

TEST_F(WorkerTest, AnExceptionThatEscapesIsAStatus) {
  load(compile(std::string(kAbi) + "#include <stdexcept>\nextern \"C\" KS_EXPORT ks_status ks_run(const Call*) { throw "
                                   "std::runtime_error(\"oh\"); }"));
  shape(4, 1);
  const Arena input(8192), output(8192);
  map(input, output);
  const Json ran = ask({{"do", "run"}, {"sets", {0}}});
  EXPECT_EQ(ran["status"], KS_FAILED);
  EXPECT_THAT(ran["detail"], HasSubstr("oh"));
}

}  // namespace
}  // namespace ks::worker
