// A person asks a run: at a terminal, on the page, or not at all. Answers of agents to questions.
#include "run/person.h"

#include <gmock/gmock.h>

#include <set>
#include <thread>

#include "agents/request_socket.h"
#include "agents/tuner.h"
#include "base/subprocess.h"
#include "run/fake_machine.h"
#include "trace/trace_reader.h"

namespace ks::run {
namespace {

using testing::HasSubstr;

/// Whole runs of the tuner over the made-up machine, with a person.
struct PersonTest : testing::Test {
  base::TempFolder folder{"person"};
  std::FILE* null = std::fopen("/dev/null", "w");
  Workbench bench;

  PersonTest() {
    bench.evaluate = [](const evaluator::Request& request) { return fake_evaluation(request); };
    bench.make_agent = [](const AgentSetup&) { return std::make_unique<agents::Tuner>(); };
    bench.make_questioner = [](const Task&, const RunPaths&) { return Questioner(); };
  }
  ~PersonTest() override { std::fclose(null); }

  RunOptions options(int evaluations = 8, const std::string& more = "") {
    RunOptions options;
    options.task =
        write_fake_task(folder.path(), more + fmt::format("[budget]\nevaluations = {}\n", evaluations), "geomean >= 9");
    options.questioner = "human";
    options.runs = (folder.path() / "runs").string();
    options.out = null;
    return options;
  }
  std::vector<trace::Event> events(const RunResult& result, const std::string& kind) {
    std::vector<trace::Event> found;
    for (auto& event : trace::read_trace(base::fs::path(result.folder) / "trace.jsonl"))
      if (event.kind == kind) found.push_back(std::move(event));
    return found;
  }
};

/// A terminal at which a list of lines is typed, and then the input is closed.
auto typing(std::vector<std::string> lines) {
  auto left = std::make_shared<std::vector<std::string>>(std::move(lines));
  return [left](double) -> std::optional<TypedLine> {
    if (left->empty()) return TypedLine{"", true};
    TypedLine line{left->front()};
    left->erase(left->begin());
    return line;
  };
}

TEST_F(PersonTest, WithoutATerminalOrAPageNothingIsMade) {
  try {
    (void)run_task(options(), bench);
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("--serve"));
  }
  EXPECT_FALSE(base::fs::exists(folder.path() / "runs"));
}

TEST_F(PersonTest, UnknownAndIncompleteQuestionersMakeNoFolderEither) {
  for (const std::string name : {"humen", "model", "hints"}) {
    auto wrong = options();
    wrong.questioner = name;
    EXPECT_THROW((void)run_task(wrong, bench), Error) << name;
  }
  EXPECT_FALSE(base::fs::exists(folder.path() / "runs"));
}

TEST_F(PersonTest, WhatIsTypedReachesTheAgentAndTurnsItsSearch) {
  auto human = options(10);
  human.person.read_line = typing({"Why is wide so slow?\x01", "", ""});
  const auto result = run_task(human, bench);
  const auto questions = events(result, "question");
  ASSERT_EQ(questions.size(), 1u);
  const Json& body = questions[0].body;
  EXPECT_EQ(body.at("questioner"), "human");
  EXPECT_EQ(body.at("text"), "Why is wide so slow?");
  EXPECT_EQ(body.at("focus"), "wide");
  EXPECT_THAT(body.at("acts").dump(), HasSubstr("question"));
  // The agent got it as a person's message, worked on that scenario, and the trace says so.
  int from_person = 0;
  for (const auto& event : events(result, "message")) from_person += event.body.at("role") == "human";
  EXPECT_EQ(from_person, 1);
  const auto answers = events(result, "answer");
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_TRUE(answers[0].body.at("answered").get<bool>());
  EXPECT_EQ(answers[0].body.at("evidence"), "it worked on wide");
  EXPECT_EQ(answers[0].body.at("asked"), questions[0].seq);
  EXPECT_EQ(answers[0].body.at("evaluations").size(), 2u);
  EXPECT_FALSE(answers[0].body.at("changes").empty());
}

TEST_F(PersonTest, AnEmptyLineGoesOnAndAClosedTerminalDoesToo) {
  auto human = options(6);
  human.person.read_line = typing({"", "  "});
  const auto result = run_task(human, bench);
  EXPECT_EQ(result.evaluations, 6);
  EXPECT_TRUE(events(result, "question").empty());
}

TEST_F(PersonTest, TheNumberOfASuggestionSendsItWithItsFacts) {
  auto human = options(12);
  human.person.read_line = typing({"", "", "1", "1", "1", "1"});
  const auto result = run_task(human, bench);
  const auto questions = events(result, "question");
  ASSERT_FALSE(questions.empty());
  bool chosen = false;
  for (const auto& question : questions)
    if (question.body.value("chosen_from", "") == "bank") {
      chosen = true;
      EXPECT_FALSE(question.body.at("facts").empty());
      EXPECT_TRUE(question.body.contains("log"));
    }
  EXPECT_TRUE(chosen);
}

TEST_F(PersonTest, GoesOnCountingAfterAnInterruption) {
  std::atomic<bool> cancel = false;
  auto human = options(9);
  human.cancel = &cancel;
  human.person.read_line = [&, line = 0](double) mutable -> std::optional<TypedLine> {
    if (++line == 2) cancel = true;
    return TypedLine{fmt::format("Why is tall slow, {}?", line)};
  };
  const auto first = run_task(human, bench);
  EXPECT_EQ(first.decision, "");
  cancel = false;
  auto again = human;
  again.task.clear(), again.questioner.clear();
  again.resume = first.folder;
  again.person.read_line = typing({"And wide?"});
  const auto questions = events(run_task(again, bench), "question");
  std::set<std::string> ids;
  for (const auto& question : questions) ids.insert(question.body.at("id"));
  EXPECT_GE(questions.size(), 2u);
  EXPECT_EQ(ids.size(), questions.size());
}

TEST_F(PersonTest, ALineOfAMegabyteIsNotSent) {
  auto human = options(4);
  human.person.read_line = typing({std::string(1 << 20, 'x'), "And then?"});
  const auto questions = events(run_task(human, bench), "question");
  ASSERT_EQ(questions.size(), 1u);
  EXPECT_EQ(questions[0].body.at("text"), "And then?");
}

TEST_F(PersonTest, ThePageIsWaitedForAndMayGoOnWithoutAQuestion) {
  auto human = options(8);
  human.person.has_page = true;
  std::thread page;
  std::vector<std::string> did;
  human.on_started = [&](const std::string& run) {
    page = std::thread([&did, run] {
      base::Channel channel(agents::connect_socket(base::fs::path(run) / "control.sock"));
      const auto ask = [&](const Json& request) {
        channel.send(request);
        const auto answer = channel.receive(5);
        return answer ? answer->body : Json::object();
      };
      for (int turn = 0; turn < 2000 && did.size() < 3; ++turn) {
        const Json status = ask({{"do", "status"}});
        if (status.empty()) return;
        if (status.value("waiting", false)) {
          const bool is_first = did.empty();
          const Json request = is_first ? Json{{"do", "say"}, {"text", "What limits tall?"}} : Json{{"do", "continue"}};
          if (ask(request).value("ok", false)) did.push_back(request.at("do"));
          // What was said is taken before the run waits again.
          while (ask({{"do", "status"}}).value("waiting", false))
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      }
    });
  };
  const auto result = run_task(human, bench);
  page.join();
  EXPECT_THAT(did, testing::ElementsAre("say", "continue", "continue"));
  const auto questions = events(result, "question");
  ASSERT_EQ(questions.size(), 1u);
  EXPECT_EQ(questions[0].body.at("focus"), "tall");
}

TEST_F(PersonTest, APersonsTimeForAQuestionCanEnd) {
  auto human = options(3, "question_seconds = 0.2\n");
  human.person.has_page = true;
  EXPECT_EQ(run_task(human, bench).evaluations, 3);
}

TEST(ScenarioNamed, IsTheLongestWholeName) {
  const std::vector<agents::ScenarioFigures> scenarios = {{"fake/wide"}, {"fake/wide-long"}, {"fake/tall"}};
  EXPECT_EQ(scenario_named("what of wide-long?", scenarios), "wide-long");
  EXPECT_EQ(scenario_named("what of fake/wide, then?", scenarios), "wide");
  EXPECT_EQ(scenario_named("how widely is that seen?", scenarios), "");
}

/// Events written to a trace and what the watch makes of them.
struct AnswerWatchTest : testing::Test {
  base::TempFolder folder{"answers"};
  trace::TraceWriter writer{folder.path() / "trace.jsonl"};
  AnswerWatch watch{folder.path() / "trace.jsonl"};
  int number = 0;

  int64_t ask(const std::string& id, const std::string& focus = "") {
    return writer.append("question", "main", {{"id", id}, {"text", "wide: 0.41x.\nWhy?"}, {"focus", focus}});
  }
  void evaluate(const std::string& objective = "") {
    writer.append("evaluation", "main",
                  {{"number", ++number}, {"memo", {{"objective", objective}, {"change", "kRows 1 -> 2"}}}});
  }
  void command(const std::string& kind, const std::string& tool, const std::string& prints) {
    writer.append("tool_call", "main",
                  {{"id", "c"}, {"tool", tool}, {"kind", kind}, {"input", {{"command", "run it"}}}});
    writer.append("tool_result", "main", {{"id", "c"}, {"text", prints}});
  }
};

TEST_F(AnswerWatchTest, TwoEvaluationsMustFollowUnlessItIsTheEnd) {
  ask("q");
  evaluate();
  EXPECT_TRUE(watch.due(false).empty());
  EXPECT_EQ(watch.due(true).size(), 1u);
  evaluate();
  const auto due = watch.due(false);
  ASSERT_EQ(due.size(), 1u);
  EXPECT_FALSE(due[0].at("answered").get<bool>());
  // What was written is not due again.
  writer.append("answer", "main", due[0]);
  EXPECT_TRUE(watch.due(true).empty());
}

TEST_F(AnswerWatchTest, AMeasurementWithANewNumberAnswersAndTheRunsOwnEvaluationDoesNot) {
  ask("q");
  command("benchmark", "evaluate", "wide 123.4 us");
  command("profiler", "shell", "0.41");  // the fact that was shown, again
  EXPECT_FALSE(watch.due(true)[0].at("answered").get<bool>());
  command("profiler", "shell", "dram 71.5 %");
  const auto due = watch.due(true);
  EXPECT_TRUE(due[0].at("answered").get<bool>());
  EXPECT_EQ(due[0].at("evidence"), "it measured 71.5");
  EXPECT_EQ(due[0].at("tools").at("profiler"), 2);
}

TEST_F(AnswerWatchTest, WordsCountWhereTheyHoldANumberThatNothingHadShown) {
  writer.append("tool_result", "main", {{"id", "x"}, {"text", "took 812 us"}});
  ask("q");
  writer.append("message", "main", {{"role", "agent"}, {"text", "It takes 812 us, that is all."}});
  EXPECT_FALSE(watch.due(true)[0].at("answered").get<bool>());
  writer.append("message", "main", {{"role", "agent"}, {"text", "The bound is 640 us."}});
  EXPECT_EQ(watch.due(true)[0].at("evidence"), "it said 640");
}

TEST_F(AnswerWatchTest, OneAnswerBelongsToOneQuestionOfTheSameId) {
  const auto first = ask("q");
  evaluate(), evaluate();
  for (const auto& body : watch.due(false)) writer.append("answer", "main", body);
  const auto second = ask("q", "wide");
  evaluate("wide"), evaluate("wide");
  const auto due = watch.due(false);
  ASSERT_EQ(due.size(), 1u);
  EXPECT_NE(due[0].at("asked"), first);
  EXPECT_EQ(due[0].at("asked"), second);
  EXPECT_EQ(due[0].at("evidence"), "it worked on wide");
}

}  // namespace
}  // namespace ks::run
