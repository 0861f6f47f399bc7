// Whole runs over a made-up machine, in milliseconds.
#include "run/run_task.h"

#include <gmock/gmock.h>

#include "agents/tuner.h"
#include "base/subprocess.h"
#include "run/control.h"
#include "run/fake_machine.h"
#include "run/progress.h"
#include "trace/trace_reader.h"

namespace ks::run {
namespace {

/// An agent that plays a list.
class Scripted : public agents::Agent {
 public:
  using Play = std::function<agents::AgentStep(const agents::AgentContext&)>;
  Scripted(std::vector<Play> plays, std::vector<agents::AgentContext>* seen) : plays_(std::move(plays)), seen_(seen) {}
  std::string name() const override { return "scripted"; }
  agents::AgentStep next(const agents::AgentContext& context) override {
    if (seen_ != nullptr) seen_->push_back(context);
    if (at_ == plays_.size()) return {agents::AgentStep::Kind::kStop, "the script is over"};
    return plays_[at_++](context);
  }

 private:
  std::vector<Play> plays_;
  std::vector<agents::AgentContext>* seen_;
  size_t at_ = 0;
};

agents::AgentStep evaluate() {
  return {agents::AgentStep::Kind::kEvaluate, "an edit"};
}
agents::AgentStep claim() {
  return {agents::AgentStep::Kind::kClaim, "it is done", {"done"}};
}
void set(const agents::AgentContext& context, const agents::Settings& settings) {
  agents::write_settings(base::fs::path(context.folder) / context.candidate, settings);
}

struct RunTaskTest : testing::Test {
  base::TempFolder folder{"run_task"};
  std::FILE* null = std::fopen("/dev/null", "w");
  Workbench bench;
  int evaluations = 0;
  std::vector<agents::AgentContext> seen;

  RunTaskTest() {
    bench.evaluate = [this](const evaluator::Request& request) {
      ++evaluations;
      return fake_evaluation(request);
    };
    bench.make_agent = [](const AgentSetup&) { return std::make_unique<agents::Tuner>(); };
    bench.make_questioner = [](const Task&, const RunPaths&) { return Questioner(); };
  }
  ~RunTaskTest() override { std::fclose(null); }

  void script(std::vector<Scripted::Play> plays) {
    bench.make_agent = [this, plays](const AgentSetup&) { return std::make_unique<Scripted>(plays, &seen); };
  }
  RunOptions options(const std::string& more = "[budget]\nevaluations = 40\n") {
    RunOptions options;
    options.task = write_fake_task(folder.path(), more);
    options.runs = (folder.path() / "runs").string();
    options.out = null;
    return options;
  }
  std::vector<trace::Event> events(const RunResult& result) {
    return trace::read_trace(base::fs::path(result.folder) / "trace.jsonl");
  }
};

TEST_F(RunTaskTest, TheTunerReachesTheGoalAndTheJudgeSaysSoByItsOwnEvaluation) {
  const auto result = run_task(options(), bench);
  EXPECT_EQ(result.decision, "met");
  EXPECT_EQ(result.reason, "goal met");
  EXPECT_GT(result.best, result.first);
  // Beside the run's own evaluations: the judge's on the goal's grid and on the hidden one.
  EXPECT_EQ(evaluations, result.evaluations + 2);
  EXPECT_TRUE(base::fs::exists(base::fs::path(result.folder) / "judge" / "hidden.tsv"));
}

TEST_F(RunTaskTest, AClaimWithoutAnEvaluationOfTheFilesIsJudgedAfresh) {
  script({[](const auto& context) {
    set(context, {{"kRows", "32"}, {"kColumns", "32"}, {"kUnroll", "4"}});
    return claim();  // edited, never evaluated
  }});
  const auto result = run_task(options(), bench);
  EXPECT_EQ(result.decision, "met");
  EXPECT_EQ(result.evaluations, 1);
}

TEST_F(RunTaskTest, AFalseClaimIsRefusedWithFiguresAndOneQuestion) {
  script({[](const auto&) { return claim(); },
          [](const auto& context) {
            set(context, {{"kRows", "2"}});
            return claim();
          }});
  bench.make_questioner = [](const Task&, const RunPaths&) {
    return [](const Moment& moment) -> std::optional<Asked> {
      if (!moment.stop_requested) return std::nullopt;
      return Asked{"q-1", "challenge_a_limit", "Which bound is that?", "wide: 0.03x.\nWhich bound is that?", {},
                   "wide"};
    };
  };
  const auto result = run_task(options(), bench);
  EXPECT_EQ(result.decision, "not_met");
  ASSERT_EQ(seen.size(), 3u);
  ASSERT_EQ(seen[1].messages.size(), 1u);
  EXPECT_EQ(seen[1].new_messages, 1u);
  EXPECT_TRUE(seen[1].messages[0].is_refusal);
  EXPECT_EQ(seen[1].messages[0].focus, "wide");
  EXPECT_THAT(seen[1].messages[0].text, testing::AllOf(testing::HasSubstr("not met"), testing::HasSubstr("geomean"),
                                                       testing::HasSubstr("Which bound")));
  int fresh = 0, known = 0;
  for (const auto& event : events(result))
    if (event.kind == "judge") (event.body.at("fresh").get<bool>() ? fresh : known)++;
  EXPECT_EQ(fresh, 1) << "the second claim came after an edit";
  EXPECT_EQ(known, 2) << "the first claim and the end: files that were judged as they lie";
}

TEST_F(RunTaskTest, NobodyGetsASecondThrowOfTheDiceForTheSameFiles) {
  // A machine whose figures swing: a run's own evaluation meets the goal, the judge's does not, the next would again.
  int calls = 0;
  bench.evaluate = [&](const evaluator::Request& request) {
    auto evaluation = fake_evaluation(request);
    const double geomean = ++calls % 2 == 1 ? 1.2 : 0.9;
    evaluation.summary.geomean["fastest"] = evaluation.summary.geomean_low["fastest"] =
        evaluation.summary.geomean_high["fastest"] = geomean;
    return evaluation;
  };
  script({[](const auto&) { return claim(); }, [](const auto&) { return claim(); }});
  const auto result = run_task(options(), bench);
  EXPECT_EQ(result.decision, "not_met");
  EXPECT_EQ(calls, 2) << "one evaluation of the start, one of the judge's";
}

TEST_F(RunTaskTest, AnAgentThatOnlyClaimsIsLetGo) {
  std::vector<Scripted::Play> plays(20, [](const auto&) { return claim(); });
  script(plays);
  const auto result = run_task(options(), bench);
  EXPECT_EQ(result.decision, "not_met");
  EXPECT_LE(seen.size(), 5u);
}

TEST_F(RunTaskTest, AQuestionChangesWhatTheTunerDoes) {
  const auto edits_of_rows = [&](const RunResult& result) {
    int count = 0;
    for (const auto& event : events(result))
      if (event.kind == "edit" && event.body.at("summary").get<std::string>().rfind("kRows", 0) == 0) ++count;
    return count;
  };
  int plain = 0, asked = 0;
  for (int seed = 1; seed <= 4; ++seed) {
    const auto with_seed = options(fmt::format("seed = {}\n[budget]\nevaluations = 8\n", seed));
    bench.make_questioner = [](const Task&, const RunPaths&) { return Questioner(); };
    plain += edits_of_rows(run_task(with_seed, bench));
    bench.make_questioner = [](const Task&, const RunPaths&) {
      return [](const Moment& moment) -> std::optional<Asked> {
        if (moment.evaluations != 3) return std::nullopt;
        return Asked{"gap-worst", "gap_triage", "What about tall?", "What about tall?", {}, "fake/tall"};
      };
    };
    asked += edits_of_rows(run_task(with_seed, bench));
  }
  EXPECT_GT(asked, plain);
}

TEST_F(RunTaskTest, GoesOnAfterACancelWithNothingDoneTwice) {
  std::atomic<bool> cancel = false;
  auto first = options();
  first.cancel = &cancel;
  bench.evaluate = [&](const evaluator::Request& request) {
    if (++evaluations == 5) cancel = true;
    return fake_evaluation(request);
  };
  const auto stopped = run_task(first, bench);
  EXPECT_EQ(stopped.reason, "cancelled");
  EXPECT_EQ(stopped.decision, "");
  EXPECT_EQ(stopped.evaluations, 4) << "the fifth was cut short";
  cancel = false;
  auto second = first;
  second.resume = stopped.folder;
  const auto done = run_task(second, bench);
  EXPECT_EQ(done.decision, "met");
  // The same search as without the interruption.
  const auto straight = run_task(options(), bench);
  EXPECT_EQ(done.evaluations, straight.evaluations);
  EXPECT_EQ(run_task(second, bench).reason, "goal met") << "a run that is over stays over";
}

TEST_F(RunTaskTest, ARunThatAnotherProcessUsesIsNotTouched) {
  auto first = options();
  std::string message;
  script({[&](const auto& context) {
    auto second = first;
    second.resume = base::fs::path(context.folder).parent_path().string();
    try {
      (void)run_task(second, bench);
    } catch (const Error& e) {
      message = e.what();
    }
    return claim();
  }});
  (void)run_task(first, bench);
  EXPECT_THAT(message, testing::AllOf(testing::HasSubstr("in use by process"), testing::HasSubstr("fake-1")));
}

TEST_F(RunTaskTest, WhatIsJudgedIsACopyThatALinkCannotLeaveOrReach) {
  script({[](const auto& context) {
    const auto candidate = base::fs::path(context.folder) / context.candidate;
    base::fs::remove(candidate);
    base::fs::create_symlink("/etc/passwd", candidate);
    return evaluate();
  }});
  std::string what;
  bench.evaluate = [&](const evaluator::Request& request) {
    if (!base::fs::exists(request.candidate)) throw Error("{}: no such candidate", request.candidate);
    return fake_evaluation(request);
  };
  try {
    (void)run_task(options(), bench);
  } catch (const Error& e) {
    what = e.what();
  }
  EXPECT_THAT(what, testing::HasSubstr("no such candidate"));
}

TEST_F(RunTaskTest, SecretsOfTheEnvironmentNeverReachTheTrace) {
  ::setenv("PLANTED_API_KEY", "a-very-secret-value", 1);
  script({[](const auto&) {
    auto step = claim();
    step.text = "my key is a-very-secret-value and sk-abcdefghijklmnopqrstuvwx";
    return step;
  }});
  const auto result = run_task(options(), bench);
  const std::string trace = base::read_file(base::fs::path(result.folder) / "trace.jsonl");
  EXPECT_EQ(trace.find("a-very-secret-value"), std::string::npos);
  EXPECT_EQ(trace.find("sk-abcdef"), std::string::npos);
  EXPECT_NE(trace.find("[secret PLANTED_API_KEY]"), std::string::npos);
  ::unsetenv("PLANTED_API_KEY");
}

TEST(Task, NamesFileLineAndMendOfWhatIsWrong) {
  const auto message = [](const std::string& text) -> std::string {
    base::TempFolder folder;
    base::write_file_atomically(folder.path() / "k.cpp", kFakeCandidate);
    try {
      (void)parse_task(text, "t.toml", folder.path());
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  const std::string good = "operator = \"rmsnorm\"\ncandidate = \"k.cpp\"\ngoal = \"geomean >= 1\"\n";
  EXPECT_EQ(message(good + "[budget]\nminutes = 1\n"), "");
  EXPECT_THAT(message(good), testing::HasSubstr("minutes"));
  EXPECT_THAT(message(good + "questoner = \"bank\"\n[budget]\nminutes = 1\n"),
              testing::AllOf(testing::StartsWith("t.toml:4: "), testing::HasSubstr("did you mean \"questioner\"")));
  EXPECT_THAT(
      message("operator = \"rmsnorm\"\ncandidate = \"k.cpp\"\ngoal = \"geomeen >= 1\"\n[budget]\nminutes = 1\n"),
      testing::AllOf(testing::StartsWith("t.toml:3: "), testing::HasSubstr("geomean")));
  EXPECT_THAT(message(good + "[budget]\nminutes = \"four\"\n"), testing::StartsWith("t.toml:5: "));
  EXPECT_THAT(
      message("operator = \"rmsnorm\"\ncandidate = \"gone.cpp\"\ngoal = \"geomean >= 1\"\n[budget]\nminutes = 1\n"),
      testing::AllOf(testing::StartsWith("t.toml:2: "), testing::HasSubstr("does not exist")));
}

TEST(Progress, FitsFortyColumnsAndNeedsNoTerminal) {
  char* text = nullptr;
  size_t size = 0;
  std::FILE* file = ::open_memstream(&text, &size);
  {
    Progress progress(file, file, true, 40);
    progress.say("a line that is much longer than forty columns, with an ümlaut near the cüt");
    progress.show("eval 3/20 | best 0.623x | 2:10 left | asked gap-worst");
  }
  std::fclose(file);
  std::string visible(text, size);
  std::free(text);
  for (size_t at = visible.find("\r\033[K"); at != std::string::npos; at = visible.find("\r\033[K"))
    visible.replace(at, 4, "\n");
  size_t begin = 0;
  for (size_t end = visible.find('\n'); end != std::string::npos; begin = end + 1, end = visible.find('\n', begin))
    EXPECT_LT(end - begin, 40u);
  EXPECT_EQ(clock_text(127), "2:07");
}

TEST(Control, TakesMessagesAndRefusesNonsense) {
  base::TempFolder folder;
  Control control(folder.path() / "control.sock");
  base::Channel channel(agents::connect_socket(folder.path() / "control.sock"));
  const auto ask = [&](const Json& request) {
    channel.send(request);
    return channel.receive(5)->body;
  };
  EXPECT_TRUE(ask({{"do", "pause"}}).at("paused").get<bool>());
  EXPECT_TRUE(control.is_paused());
  EXPECT_FALSE(ask({{"do", "say"}, {"text", std::string(1 << 20, 'x')}}).at("ok").get<bool>());
  EXPECT_TRUE(ask({{"do", "say"}, {"text", "Wo bleibt\x01 die Zeit?"}}).at("ok").get<bool>());
  EXPECT_THAT(control.take_messages(), testing::ElementsAre("Wo bleibt die Zeit?"));
  EXPECT_THAT(ask({{"do", "dance"}}).at("error").get<std::string>(), testing::HasSubstr("dance"));
  EXPECT_FALSE(ask(Json::array()).at("ok").get<bool>());
}

}  // namespace
}  // namespace ks::run
