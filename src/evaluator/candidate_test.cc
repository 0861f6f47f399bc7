#include "evaluator/candidate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"

namespace ks::evaluator {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A folder with files in it.
class CandidateFiles : public ::testing::Test {
 protected:
  std::string put(const std::string& name, const std::string& text) {
    const auto path = folder_.path() / name;
    base::make_folder(path.parent_path());
    base::write_file_atomically(path, text);
    return path.string();
  }
  std::string folder() const { return folder_.path().string(); }
  static std::string error_of(const std::string& path, const std::string& override = "") {
    try {
      load_candidate(path, override);
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  }

 private:
  base::TempFolder folder_;
};

using SingleFile = CandidateFiles;
using Folder = CandidateFiles;
using WorkerFolder = CandidateFiles;

TEST_F(SingleFile, NamesItsOperatorAndDevice) {
  const auto candidate =
      load_candidate(put("fast.cpp", "#include <x>\n//  kernelseek: operator=rmsnorm\nint x;\n"), "");
  EXPECT_EQ(candidate.operator_name, "rmsnorm");
  EXPECT_EQ(candidate.device, "cpu");
  EXPECT_THAT(candidate.sources, ElementsAre("fast.cpp"));
  EXPECT_EQ(candidate.folder, folder());
  EXPECT_EQ(load_candidate(put("fast.cu", "// kernelseek: operator=x\n"), "").device, "cuda");
  EXPECT_EQ(load_candidate(put("cpu.cu", "// kernelseek: operator=x device=cpu\n"), "").device, "cpu");
  EXPECT_EQ(load_candidate(put("other.cu", "// kernelseek: operator=x arch=100a\n"), "").arch, "100a");
}

TEST_F(SingleFile, AnOverrideTakesThePlaceOfTheMarker) {
  EXPECT_EQ(load_candidate(put("a.cpp", "// kernelseek: operator=rmsnorm\n"), "other").operator_name, "other");
  EXPECT_EQ(load_candidate(put("b.cpp", "int x;\n"), "other").operator_name, "other");
}

TEST_F(SingleFile, AnOperatorsFolderIsIncludedFrom) {
  put("my_operator/my.h", "");
  EXPECT_THAT(load_candidate(put("a.cpp", ""), folder() + "/my_operator").includes,
              ElementsAre(folder() + "/my_operator"));
}

TEST_F(SingleFile, SaysHowToMendAMissingOrMalformedMarker) {
  EXPECT_THAT(error_of(put("none.cpp", "int x;\n")), HasSubstr("none.cpp:1: does not say which operator"));
  EXPECT_THAT(error_of(put("none.cpp", "int x;\n")), HasSubstr("// kernelseek: operator=NAME"));
  EXPECT_THAT(error_of(put("key.cpp", "\n// kernelseek: operater=x\n")),
              HasSubstr("key.cpp:2: unknown key \"operater\""));
  EXPECT_THAT(error_of(put("word.cpp", "// kernelseek: rmsnorm\n")),
              HasSubstr("\"rmsnorm\" in the marker line must be key=value"));
  EXPECT_THAT(error_of(put("device.cpp", "// kernelseek: operator=x device=tpu\n")),
              HasSubstr("unknown device \"tpu\""));
  EXPECT_THAT(error_of(put("a.txt", "")), HasSubstr("a candidate is a .cpp, .cc or .cu file"));
  EXPECT_THAT(error_of(folder() + "/absent.cpp"), HasSubstr("there is no such file"));
}

TEST_F(Folder, ExpandsPatternsInOrder) {
  put("b.cpp", "");
  put("parts/2.cpp", "");
  put("parts/1.cpp", "");
  put("candidate.toml",
      "operator = \"rmsnorm\"\nsources = [\"parts/*.cpp\", \"b.cpp\"]\nflags = [\"-O2\"]\nlibs = [\"gomp\"]\nstrict = "
      "true\n");
  const auto candidate = load_candidate(folder(), "");
  EXPECT_THAT(candidate.sources, ElementsAre("b.cpp", "parts/1.cpp", "parts/2.cpp"));
  EXPECT_EQ(candidate.device, "cpu");
  EXPECT_TRUE(candidate.strict);
  EXPECT_THAT(candidate.libs, ElementsAre("gomp"));
}

TEST_F(Folder, NamesTheLineOfWhatIsWrong) {
  put("a.cpp", "");
  const auto error_with = [&](const std::string& text) {
    put("candidate.toml", text);
    return error_of(folder());
  };
  EXPECT_THAT(error_with("operator = \"x\"\nsauces = [\"a.cpp\"]\n"),
              HasSubstr("candidate.toml:2: unknown key \"sauces\" (did you mean \"sources\"?)"));
  EXPECT_THAT(error_with("operator = \"x\"\n\nsources = [\"b*.cpp\"]\n"),
              HasSubstr("candidate.toml:3: \"b*.cpp\" matches no file"));
  EXPECT_THAT(error_with("sources = [\"a.cpp\"]\n"), HasSubstr("the key \"operator\" is missing"));
  EXPECT_THAT(error_with("operator = \"x\"\nsources = \"a.cpp\"\n"),
              HasSubstr("candidate.toml:2: \"sources\" must be a list of strings"));
  EXPECT_THAT(error_with("operator = \"x\"\nsources = []\n"), HasSubstr("candidate.toml:2: no sources"));
  EXPECT_THAT(error_with("operator = x\n"), HasSubstr("candidate.toml:1: malformed TOML"));
  EXPECT_THAT(error_with("operator = \"x\"\nsources = [\"a.cpp\"]\nstrict = 1\n"),
              HasSubstr("candidate.toml:3: \"strict\" must be true or false"));
}

TEST_F(Folder, RefusesFlagsThatReachBeyondTheBuild) {
  put("a.cpp", "");
  for (const std::string flag : {"-fplugin=x.so", "-wrapper", "-B/x", "-ccbin=x", "@x", "-o", "-Xcompiler,-fplugin=x",
                                 "-include", "-I/x", "-save-temps"}) {
    put("candidate.toml", "operator = \"x\"\nsources = [\"a.cpp\"]\nflags = [\"-O2\", \"" + flag + "\"]\n");
    EXPECT_THAT(error_of(folder()), HasSubstr("candidate.toml:3: the flag \"" + flag + "\"")) << flag;
  }
}

TEST_F(WorkerFolder, HasACommand) {
  put("worker.toml", "operator = \"rmsnorm\"\ncommand = [\"{python}\", \"{folder}/worker.py\"]\n");
  const auto candidate = load_candidate(folder(), "");
  ASSERT_EQ(candidate.command.size(), 2u);
  EXPECT_THAT(candidate.command[0], HasSubstr("python3"));
  EXPECT_EQ(candidate.command[1], folder() + "/worker.py");
  put("worker.toml", "operator = \"rmsnorm\"\n");
  EXPECT_THAT(error_of(folder()), HasSubstr("the key \"command\" is missing"));
}

TEST_F(Folder, NeedsOneOfTheTwoFiles) {
  EXPECT_THAT(error_of(folder()),
              HasSubstr("holds candidate.toml (sources) or worker.toml (a program); this has neither"));
}

}  // namespace
}  // namespace ks::evaluator
