// The store: what is appended is read back, whatever happens to the writer.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "trace/json_lines.h"
#include "trace/trace_reader.h"
#include "trace/trace_writer.h"

namespace ks::trace {
namespace {

using base::fs::path;

void add_text(const path& file, std::string_view text) {
  std::ofstream(file, std::ios::app | std::ios::binary) << text;
}

TEST(TraceStore, ReadsBackWhatWasWritten) {
  const base::TempFolder folder;
  const path file = folder.path() / "trace.jsonl";
  TraceWriter writer(file, {{"task", "attention"}});
  EXPECT_EQ(1, writer.append("message", "main", {{"role", "human"}, {"text", "why\nis it slow?"}}));
  EXPECT_EQ(2, writer.append("evaluation", "main", {{"number", 1}, {"geomean", 0.5}}, true));
  Counters counters;
  const auto events = read_trace(file, &counters);
  ASSERT_EQ(2u, events.size());
  EXPECT_EQ("why\nis it slow?", events[0].body["text"]);
  EXPECT_EQ(2, events[1].seq);
  EXPECT_DOUBLE_EQ(0.5, events[1].body["geomean"].get<double>());
  EXPECT_GT(events[0].time, 1e9);
  EXPECT_TRUE(counters.empty());
}

TEST(TraceStore, ResumesAfterATornLineAndKeepsTheTornBytes) {
  const base::TempFolder folder;
  const path file = folder.path() / "trace.jsonl";
  { TraceWriter(file).append("note", "main", {{"text", "whole"}}); }
  add_text(file, R"({"seq":2,"time":1,"kind":"note","sess)");
  TraceWriter writer(file);
  EXPECT_EQ(R"({"seq":2,"time":1,"kind":"note","sess)", base::read_file(writer.torn_file()));
  EXPECT_EQ(2, writer.append("note", "main", {{"text", "after"}}));
  Counters counters;
  const auto events = read_trace(file, &counters);
  ASSERT_EQ(2u, events.size());
  EXPECT_EQ("after", events[1].body["text"]);
  EXPECT_TRUE(counters.empty());
}

TEST(TraceStore, KeepsAWholeEventThatLacksOnlyItsNewline) {
  const base::TempFolder folder;
  const path file = folder.path() / "trace.jsonl";
  { TraceWriter(file).append("note", "main", {}); }
  add_text(file, R"({"seq":2,"time":1,"kind":"note","session":"main","body":{"text":"x"}})");
  TraceWriter writer(file);
  EXPECT_TRUE(writer.torn_file().empty());
  EXPECT_EQ(3, writer.append("note", "main", {}));
  EXPECT_EQ(3u, read_trace(file).size());
}

TEST(TraceStore, RefusesASecondWriterAndAForeignFile) {
  const base::TempFolder folder;
  const path file = folder.path() / "trace.jsonl";
  const TraceWriter writer(file);
  EXPECT_THROW(TraceWriter second(file), Error);
  const path foreign = folder.path() / "other.jsonl";
  add_text(foreign, "{\"type\":\"user\"}\n");
  EXPECT_THROW(TraceWriter third(foreign), Error);
  EXPECT_EQ("{\"type\":\"user\"}\n", base::read_file(foreign));
}

TEST(TraceStore, LosesNoCompletedEventToAKill) {
  const base::TempFolder folder;
  const path file = folder.path() / "trace.jsonl";
  int pipe_fds[2];
  ASSERT_EQ(0, ::pipe(pipe_fds));
  const pid_t child = ::fork();
  if (child == 0) {
    TraceWriter writer(file);
    for (int64_t i = 0; i < 1000000; ++i) {
      const int64_t seq = writer.append("note", "main", {{"text", std::string(static_cast<size_t>(i % 5000), 'x')}});
      if (::write(pipe_fds[1], &seq, sizeof seq) < 0) ::_exit(1);
    }
    ::_exit(0);
  }
  ::close(pipe_fds[1]);
  int64_t completed = 0, seq = 0;
  while (completed < 2000 && ::read(pipe_fds[0], &seq, sizeof seq) == sizeof seq) completed = seq;
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  while (::read(pipe_fds[0], &seq, sizeof seq) == sizeof seq) completed = seq;
  ::close(pipe_fds[0]);
  { TraceWriter writer(file); }
  Counters counters;
  EXPECT_GE(static_cast<int64_t>(read_trace(file, &counters).size()), completed);
  EXPECT_TRUE(counters.empty());
}

TEST(TraceStore, NumbersEventsOfSeveralThreadsWithoutGapOrLoss) {
  const base::TempFolder folder;
  const path file = folder.path() / "trace.jsonl";
  TraceWriter writer(file);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) writer.append("note", "main", {{"text", "t"}});
    });
  }
  for (auto& thread : threads) thread.join();
  Counters counters;
  EXPECT_EQ(800u, read_trace(file, &counters).size());
  EXPECT_TRUE(counters.empty());
}

TEST(TraceReader, CountsBadLinesByNameAndKeepsTheRest) {
  const base::TempFolder folder;
  const path file = folder.path() / "trace.jsonl";
  {
    TraceWriter writer(file);
    writer.append({0, 100, "note", "main", {{"text", "first"}}});
  }
  add_text(file, "{broken\n[1,2]\n");
  add_text(file, R"({"seq":1,"time":90,"kind":"note","session":"main","body":{}})"
                 "\n");
  add_text(file, R"({"seq":5,"time":95,"kind":"from_the_future","session":"main","body":{"a":1}})"
                 "\n");
  add_text(file, "{\"seq\":6,\"time\":96,\"kind\":\"note\",\"session\":\"main\",\"body\":{\"text\":\"\xff!\"}}\n");
  add_text(file, R"({"seq":7,"time":97,"kind":"note","session":"main","body":{"text":"\ud83d lone"}})"
                 "\n{\"seq\":");
  Counters counters;
  const auto events = read_trace(file, &counters);
  ASSERT_EQ(5u, events.size());
  EXPECT_EQ("from_the_future", events[2].kind);
  EXPECT_EQ("\xEF\xBF\xBD!", events[3].body["text"]);
  EXPECT_EQ("\xEF\xBF\xBD lone", events[4].body["text"]);
  const Counters expected = {{"not_json", 1},     {"not_an_event", 1},   {"duplicate_seq", 1},
                             {"seq_gap", 1},      {"unknown_kind", 1},   {"clock_went_backwards", 1},
                             {"invalid_utf8", 1}, {"lone_surrogate", 1}, {"torn_last_line", 1}};
  EXPECT_EQ(expected, counters);
}

TEST(TraceReader, FollowsAGrowingFile) {
  const base::TempFolder folder;
  const path file = folder.path() / "trace.jsonl";
  TraceWriter writer(file);
  TraceReader reader(file);
  EXPECT_FALSE(reader.next());
  writer.append("note", "main", {{"text", "one"}});
  EXPECT_EQ("one", reader.next()->body["text"]);
  add_text(file, R"({"seq":2,"time":1,"kind":"note",)");
  EXPECT_FALSE(reader.next());
  const int64_t offset = reader.offset();
  add_text(file, R"("session":"main","body":{"text":"two"}})"
                 "\n");
  EXPECT_EQ("two", reader.next()->body["text"]);
  TraceReader later(file, offset);
  EXPECT_EQ("two", later.next()->body["text"]);
}

TEST(LineReader, SkipsAnOverlongLineInConstantMemoryAndSaysSo) {
  const base::TempFolder folder;
  const path file = folder.path() / "long";
  add_text(file, "a\r\n" + std::string(5 << 20, 'x') + "\nb\nrest");
  LineReader lines(file, 0, 1 << 20);
  EXPECT_EQ("a", lines.next()->text);
  const auto overlong = lines.next();
  EXPECT_TRUE(overlong->is_too_long);
  EXPECT_EQ((5 << 20) + 1, overlong->bytes);
  EXPECT_EQ("b", lines.next()->text);
  EXPECT_FALSE(lines.next());
  EXPECT_EQ("rest", lines.rest()->text);
  EXPECT_FALSE(lines.rest());
}

TEST(JsonLines, RescuesObjectsThatRanTogetherOrWereInjected) {
  JsonLineParser parser;
  Counters counters;
  std::vector<std::string> seen;
  const auto use = [&](Json& json) { seen.push_back(json.dump()); };
  std::string text = R"({"a":1}{"b":"}"})";
  text.reserve(text.size() + LineReader::kPadding);
  parser.parse_objects(text, counters, {}, use);
  text = R"({"type":"x","te{"c":3})";
  text.reserve(text.size() + LineReader::kPadding);
  parser.parse_objects(text, counters, {}, use);
  EXPECT_EQ((std::vector<std::string>{R"({"a":1})", R"({"b":"}"})", R"({"c":3})"}), seen);
  EXPECT_EQ((Counters{{"joined_lines", 1}, {"damaged_line", 1}}), counters);
}

TEST(JsonLines, KeepsOnlyTheKeysAskedFor) {
  JsonLineParser parser;
  Counters counters;
  const std::array<std::string_view, 1> keep = {"b"};
  EXPECT_EQ(R"({"b":[1,-2,1.5,18446744073709551615,true,null,"ü"]})",
            parser
                .parse_unpadded(R"({"a":{"x":[1,{"y":2}]},"b":[1,-2,1.5,18446744073709551615,true,null,"\u00fc"]})",
                                counters, keep)
                ->dump());
  EXPECT_TRUE(counters.empty());
}

TEST(JsonLines, EndsACutDocumentAfterItsLastWholeElement) {
  EXPECT_EQ(R"({"m":[{"a":1},{"b":[2]}]})", close_truncated(R"({"m":[{"a":1},{"b":[2]},{"c":"th)"));
  EXPECT_EQ("", close_truncated(R"({"m":"x)"));
}

}  // namespace
}  // namespace ks::trace
