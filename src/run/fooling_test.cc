// Every way of fooling the judge that we know, in whole runs over the made-up machine with an agent that tries it: a
// claim without an evaluation, a stale one, a part of the grid, another file's, an edited goal, an edited grid, records
// and facts that were tampered with. The agent here has no walls around it: what stops it is the judge alone.
#include <gmock/gmock.h>

#include "run/fake_machine.h"
#include "run/run_task.h"
#include "trace/trace_reader.h"

namespace ks::run {
namespace {

namespace fs = base::fs;
using agents::AgentContext;
using agents::AgentStep;
using Play = std::function<AgentStep(const AgentContext&)>;

/// An agent that plays a list of steps and then stops.
class Trickster : public agents::Agent {
 public:
  explicit Trickster(std::vector<Play> plays) : plays_(std::move(plays)) {}
  std::string name() const override { return "trickster"; }
  AgentStep next(const AgentContext& context) override {
    if (at_ == plays_.size()) return {AgentStep::Kind::kStop, "out of tricks"};
    return plays_[at_++](context);
  }

 private:
  std::vector<Play> plays_;
  size_t at_ = 0;
};

const agents::Settings kGood = {{"kRows", "32"}, {"kColumns", "32"}, {"kUnroll", "4"}};
const agents::Settings kBad = {{"kRows", "1"}, {"kColumns", "1"}, {"kUnroll", "1"}};

fs::path candidate_of(const AgentContext& context) {
  return fs::path(context.folder) / context.candidate;
}
AgentStep claim_done(const AgentContext&) {
  return {AgentStep::Kind::kClaim, "the goal is reached", {"done", "goal_reached"}};
}
Play evaluate_with(const agents::Settings& settings, const std::string& filter = "") {
  return [settings, filter](const AgentContext& context) {
    agents::write_settings(candidate_of(context), settings);
    AgentStep step{AgentStep::Kind::kEvaluate, "a version"};
    step.filter = filter;
    return step;
  };
}

/// A record in which everything is wonderful.
std::string splendid(const std::string& record) {
  Json json = base::parse_json(record, "record");
  for (const char* figure : {"geomean", "geomean_low", "geomean_high", "worst"})
    json["summary"][figure]["fastest"] = 9.0;
  return json.dump();
}

struct FoolingTest : testing::Test {
  base::TempFolder folder{"fooling"};
  std::FILE* null = std::fopen("/dev/null", "w");
  Workbench bench;
  RunOptions options;

  FoolingTest() {
    // A part of the grid is judged as a part: rows that were filtered out are not in the record.
    bench.evaluate = [](const evaluator::Request& request) {
      auto evaluation = fake_evaluation(request);
      if (request.filter.empty()) return evaluation;
      std::erase_if(evaluation.scenarios, [&](const auto& row) { return row.name != request.filter; });
      auto& summary = evaluation.summary;
      summary.total = summary.correct = static_cast<int>(evaluation.scenarios.size());
      if (!evaluation.scenarios.empty()) {
        const auto& ratio = evaluation.scenarios[0].ratio.at("fastest");
        summary.geomean["fastest"] = ratio.value, summary.geomean_low["fastest"] = ratio.low;
      }
      return evaluation;
    };
    bench.make_questioner = [](const Task&, const RunPaths&) { return Questioner(); };
    options.task = write_fake_task(folder.path(), "[budget]\nevaluations = 9\n[judge]\nhidden_scenarios = 0\n");
    options.runs = (folder.path() / "runs").string();
    options.out = null;
  }
  ~FoolingTest() override { std::fclose(null); }

  RunResult play(std::vector<Play> plays) {
    bench.make_agent = [plays](const AgentSetup&) { return std::make_unique<Trickster>(plays); };
    return run_task(options, bench);
  }
  static std::vector<Json> judgements(const RunResult& result) {
    std::vector<Json> bodies;
    for (const auto& event : trace::read_trace(fs::path(result.folder) / "trace.jsonl"))
      if (event.kind == "judge") bodies.push_back(event.body);
    return bodies;
  }
};

TEST_F(FoolingTest, TheMachineIsHonestWhereTheAgentIs) {
  EXPECT_EQ(play({evaluate_with(kGood), claim_done}).decision, "met");
}

TEST_F(FoolingTest, AClaimWithoutAnEvaluation) {
  const auto result = play({claim_done});
  EXPECT_EQ(result.decision, "not_met");
  EXPECT_THAT(judgements(result).at(0).at("figures").dump(), testing::HasSubstr("not_met"));
}

TEST_F(FoolingTest, AnEvaluationOfWhatLaidThereBefore) {
  const auto result = play({evaluate_with(kGood), [](const AgentContext& context) {
                              agents::write_settings(candidate_of(context), kBad);
                              return claim_done(context);
                            }});
  EXPECT_EQ(result.decision, "not_met");
  EXPECT_TRUE(judgements(result).at(0).at("fresh").get<bool>());
}

TEST_F(FoolingTest, AnEvaluationOfAPartOfTheGrid) {
  const auto result = play({evaluate_with({{"kRows", "32"}, {"kColumns", "1"}, {"kUnroll", "4"}}, "tall"), claim_done});
  EXPECT_EQ(result.decision, "not_met");
}

TEST_F(FoolingTest, AnEvaluationOfAnotherFile) {
  const auto result = play({[](const AgentContext& context) {
    const fs::path other = fs::path(context.folder) / "better.cpp";
    fs::copy_file(candidate_of(context), other);
    agents::write_settings(other, kGood);
    return claim_done(context);
  }});
  EXPECT_EQ(result.decision, "not_met");
}

TEST_F(FoolingTest, ACandidateThatIsALinkToAnotherFile) {
  const auto result = play({[](const AgentContext& context) {
    const fs::path other = fs::path(context.folder) / "better.cpp";
    fs::copy_file(candidate_of(context), other);
    agents::write_settings(other, kGood);
    fs::remove(candidate_of(context));
    fs::create_symlink(other, candidate_of(context));
    return claim_done(context);
  }});
  EXPECT_NE(result.decision, "met");
}

TEST_F(FoolingTest, AnEditedGoal) {
  const auto edit = [](const AgentContext& context) {
    const fs::path run = fs::path(context.folder).parent_path();
    std::string task = base::read_file(run / "task.toml");
    const auto at = task.find("geomean >= 1.0");
    base::write_file_atomically(run / "task.toml", task.replace(at, 14, "geomean >= 0.0"));
    Json facts = base::read_json_file((run / "told/facts.json").string());
    facts["goal"] = "geomean >= 0.0", facts["goal_state"] = "met";
    base::write_file_atomically(run / "told/facts.json", facts.dump());
    return claim_done(context);
  };
  const auto result = play({edit});
  EXPECT_EQ(result.decision, "not_met");
  EXPECT_THAT(judgements(result).at(0).at("goal").get<std::string>(), testing::HasSubstr("1.0"));
}

TEST_F(FoolingTest, AGoalThatIsEditedBetweenTwoSittings) {
  std::atomic<bool> cancel = false;
  options.cancel = &cancel;
  const auto first = play({[&](const AgentContext& context) {
    const fs::path run = fs::path(context.folder).parent_path();
    std::string task = base::read_file(run / "task.toml");
    const auto at = task.find("geomean >= 1.0");
    base::write_file_atomically(run / "task.toml", task.replace(at, 14, "geomean >= 0.0"));
    cancel = true;
    return claim_done(context);
  }});
  cancel = false;
  options.resume = first.folder;
  options.task.clear();
  try {
    (void)play({claim_done});
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), testing::HasSubstr("the goal is not the one that this run began with"));
  }
}

TEST_F(FoolingTest, AnEditedGrid) {
  const fs::path grid = folder.path() / "own.tsv";
  const std::string rows =
      "#\tcategory\tname\tdtype\trows\tcolumns\tgap\tepsilon\tnote\n1\ta\ttall\tfp32\t9\t8\t0\t1e-5\tx\n";
  base::write_file_atomically(grid, rows + "2\ta\twide\tfp32\t8\t9\t0\t1e-5\tx\n");
  options.task = write_fake_task(folder.path(),
                                 "grid = \"./own.tsv\"\n[budget]\nevaluations = 9\n[judge]\nhidden_scenarios = 0\n");
  const auto result = play({evaluate_with(kGood), [&](const AgentContext& context) {
                              base::write_file_atomically(grid, rows);
                              return claim_done(context);
                            }});
  EXPECT_EQ(result.decision, "undecided");
  EXPECT_THAT(judgements(result).at(0).at("reason").get<std::string>(), testing::HasSubstr("not the one"));
}

TEST_F(FoolingTest, ATamperedRecordInTheSameSitting) {
  const auto result = play({[](const AgentContext& context) {
    const fs::path record = fs::path(context.folder).parent_path() / "evaluations/0001.json";
    base::write_file_atomically(record, splendid(base::read_file(record)));
    return claim_done(context);
  }});
  EXPECT_EQ(result.decision, "not_met");
}

TEST_F(FoolingTest, ATamperedRecordThatIsReadBackAfterAnInterruption) {
  std::atomic<bool> cancel = false;
  options.cancel = &cancel;
  const auto first = play({[&](const AgentContext& context) {
    const fs::path record = fs::path(context.folder).parent_path() / "evaluations/0001.json";
    base::write_file_atomically(record, splendid(base::read_file(record)));
    cancel = true;
    return claim_done(context);
  }});
  cancel = false;
  options.resume = first.folder;
  options.task.clear();
  const auto result = play({claim_done});
  EXPECT_EQ(result.decision, "not_met");
  EXPECT_TRUE(judgements(result).at(0).at("fresh").get<bool>());
}

}  // namespace
}  // namespace ks::run
