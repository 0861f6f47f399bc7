// Tests of the foundation: what other folders rely on without looking.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cctype>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/subprocess.h"
#include "base/table.h"
#include "base/toml.h"

namespace ks::base {
namespace {

TEST(Json, NamesOriginAndLineOfAMalformedText) {
  try {
    parse_json("{\n\"a\": 1,\n\"b\": }", "task.json");
    FAIL() << "must throw";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("task.json:3:"), std::string::npos) << e.what();
  }
}

TEST(Json, RequireNamesTheMissingKey) {
  EXPECT_THROW(
      {
        try {
          require<int>(Json{{"a", 1}}, "b", "x.json");
        } catch (const Error& e) {
          EXPECT_STREQ(e.what(), "x.json: the key \"b\" is missing");
          throw;
        }
      },
      Error);
}

TEST(Toml, KnowsTheLineOfEveryKey) {
  const auto file = parse_toml("a = 1\n[b]\nc = [\"x\", 2.5]\n[[d]]\ne = true\n", "t.toml");
  EXPECT_EQ(file.values["b"]["c"][0], "x");
  EXPECT_EQ(file.values["d"][0]["e"], true);
  EXPECT_EQ(file.where("b.c"), "t.toml:3");
  EXPECT_EQ(file.where("d[0].e"), "t.toml:5");
  EXPECT_EQ(file.where("zzz"), "t.toml");
}

TEST(Toml, NamesTheLineOfAMistake) {
  try {
    parse_toml("a = 1\nb = \n", "t.toml");
    FAIL() << "must throw";
  } catch (const Error& e) {
    EXPECT_TRUE(std::string(e.what()).starts_with("t.toml:2: malformed TOML")) << e.what();
  }
}

TEST(File, AtomicWriteReplacesTheWholeContent) {
  const TempFolder folder;
  const auto path = folder.path() / "a.txt";
  write_file_atomically(path, "first, longer");
  write_file_atomically(path, "second");
  EXPECT_EQ(read_file(path), "second");
}

TEST(File, ErrorNamesThePathAndTheReason) {
  try {
    read_file("/nonexistent/file");
    FAIL() << "must throw";
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "/nonexistent/file: cannot read: No such file or directory");
  }
}

TEST(File, AppendedLinesComeBackInOrder) {
  const TempFolder folder;
  append_line(folder.path() / "log", "one");
  append_line(folder.path() / "log", "two");
  EXPECT_EQ(read_lines(folder.path() / "log"), (std::vector<std::string>{"one", "two"}));
}

TEST(Hash, Sha256MatchesThePublishedVector) {
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Random, IsAPureFunctionOfTheSeed) {
  Random a(7), b(7), c(8);
  EXPECT_EQ(a.next(), b.next());
  EXPECT_NE(a.next(), c.next());
}

TEST(RunProcess, GivesInputAndTakesBothOutputs) {
  const auto result = run_process({.argv = {"sh", "-c", "cat; echo problem >&2; exit 3"}, .input = "hello"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.out, "hello");
  EXPECT_EQ(result.err, "problem\n");
}

TEST(RunProcess, EndsAProcessGroupAtItsTimeLimit) {
  const auto result = run_process({.argv = {"sh", "-c", "sleep 60 & sleep 60"}, .timeout_s = 0.2});
  EXPECT_TRUE(result.timed_out);
  EXPECT_LT(result.wall_s, 5.0);
}

TEST(RunProcess, SaysWhyAProgramCannotBeStarted) {
  EXPECT_THROW(run_process({.argv = {"no-such-program-at-all"}}), Error);
}

TEST(Child, ExchangesLinesAndDescriptors) {
  // The shell echoes what it reads from descriptor 3.
  Child child({.argv = {"sh", "-c", "read line <&3; echo \"$line\" >&3; sleep 60"}});
  ASSERT_TRUE(child.channel().send(Json{{"say", "hello"}}));
  const auto answer = child.channel().receive(10);
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->body["say"], "hello");
  EXPECT_TRUE(child.alive());
  EXPECT_EQ(describe_exit(child.kill()), "killed by SIGKILL");
}

TEST(Channel, CarriesOpenFiles) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  Child child({.argv = {"sleep", "60"}});
  EXPECT_TRUE(child.channel().send(Json::object(), {ends[0], ends[1]}));
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(TextTable, ShortensWordsToFitTheWidth) {
  TextTable table({"name", "time"});
  table.add({"a_very_long_scenario_name_that_does_not_fit", "12.5"});
  EXPECT_EQ(table.text(20), "name            time\na_very_long_s…  12.5\n");
}

TEST(TextTable, GoesRowByRowWhereColumnsWouldBeTooNarrowToRead) {
  TextTable table({"scenario", "verdict", "reason"});
  table.add({"a_very_long_scenario_name", "wrong", "row 3 is off by more than the limit"});
  EXPECT_EQ(table.text(24),
            "a_very_long_scenario_name\n  verdict: wrong\n  reason: row 3 is off\n"
            "    by more than the\n    limit\n");
}

TEST(NearestWord, FindsATypoAndNothingForAnotherWord) {
  EXPECT_EQ(nearest_word("geomaen", {"geomean", "worst"}), "geomean");
  EXPECT_EQ(nearest_word("zzzzzz", {"geomean", "worst"}), "");
}

TEST(Clock, WritesUtcWithMilliseconds) {
  EXPECT_EQ(iso8601(0.25), "1970-01-01T00:00:00.250Z");
}

}  // namespace
}  // namespace ks::base
