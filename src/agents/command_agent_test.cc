// The driver of agent programs, against programs that are shell scripts and misbehave as real ones have been seen to.
#include "agents/command_agent.h"

#include <gmock/gmock.h>
#include <sys/wait.h>

#include "base/clock.h"

namespace ks::agents {
namespace {

struct CommandAgentTest : testing::Test {
  base::TempFolder folder{"agent"};
  std::vector<std::pair<std::string, Json>> events;
  bool should_stop = false;
  AgentContext context;

  CommandAgentTest() {
    for (const char* part : {"work", "told", "logs", "agent", "hook", "judge"}) base::make_folder(folder.path() / part);
    base::write_file_atomically(folder.path() / "work" / "k.cpp", "int a;\n");
    base::write_file_atomically(folder.path() / "judge" / "secret", "hidden grid\n");
    context.folder = (folder.path() / "work").string();
    context.candidate = "k.cpp";
    context.goal = "geomean >= 1";
  }

  CommandSetup setup(const std::string& start, const std::string& resume = "",
                     const std::string& events_format = "text") {
    CommandSetup setup;
    setup.description.name = "script";
    setup.description.start = {"sh", "-c", start};
    if (!resume.empty()) setup.description.resume = {"sh", "-c", resume};
    setup.description.events = events_format;
    setup.description.session_from = {"thread.started", "", {}};
    setup.description.session_key = "thread_id";
    setup.description.finished = {"turn.completed", "", {}};
    setup.description.failed = {"turn.failed", "", {}};
    setup.description.rate_limit = {"429"};
    setup.prompt = "Make it faster.";
    setup.isolation.run_folder = folder.path();
    setup.isolation.work = folder.path() / "work";
    setup.isolation.readable = {folder.path() / "told"};
    setup.isolation.writable = {folder.path() / "hook", folder.path() / "agent", folder.path() / "run.sock"};
    setup.socket = folder.path() / "run.sock";
    setup.logs = folder.path() / "logs";
    setup.run_folder = folder.path();
    setup.kernelseek = "kernelseek";
    setup.patience = {.first_line_s = 2, .silence_s = 2, .after_finish_s = 0.5, .rate_limit_s = 0.2, .failures = 3};
    setup.sink = [this](const std::string& kind, const std::string&, const Json& body) {
      events.emplace_back(kind, body);
    };
    setup.should_stop = [this] { return should_stop; };
    return setup;
  }
  int count(const std::string& kind) const {
    int result = 0;
    for (const auto& [name, body] : events) result += name == kind;
    return result;
  }
};

constexpr const char* kCodexTurn =
    "echo '{\"type\":\"thread.started\",\"thread_id\":\"t-1\"}'; echo '{\"type\":\"turn.started\"}';"
    "echo '{\"type\":\"item.completed\",\"item\":{\"id\":\"item_1\",\"type\":\"agent_message\",\"text\":\"I am "
    "done.\"}}';"
    "echo "
    "'{\"type\":\"turn.completed\",\"usage\":{\"input_tokens\":300,\"cached_input_tokens\":0,\"output_tokens\":30,"
    "\"reasoning_output_tokens\":0}}';";

TEST_F(CommandAgentTest, TheEndOfATurnIsAClaimAndTheAnswerResumesTheSession) {
  CommandSetup with_resume = setup(kCodexTurn, "");
  with_resume.description.resume = {"sh",
                                    "-c",
                                    "echo \"$1 $2\" > resumed; echo "
                                    "'{\"type\":\"item.completed\",\"item\":{\"id\":\"item_1\",\"type\":\"agent_"
                                    "message\",\"text\":\"I went on.\"}}'; echo "
                                    "'{\"type\":\"turn.completed\",\"usage\":{\"input_tokens\":500,\"cached_input_"
                                    "tokens\":0,\"output_tokens\":50,\"reasoning_output_tokens\":0}}'",
                                    "sh",
                                    "{session}",
                                    "{message}"};
  with_resume.description.events = "codex";
  CommandAgent agent(std::move(with_resume));
  const auto first = agent.next(context);
  EXPECT_EQ(first.kind, AgentStep::Kind::kClaim);
  EXPECT_EQ(first.text, "I am done.");
  EXPECT_EQ(agent.state().at("session"), "t-1");
  context.messages.push_back({"The goal is not met. $HOME `x`", "", true});
  context.new_messages = 1;
  EXPECT_EQ(agent.next(context).text, "I went on.");
  EXPECT_EQ(base::read_file(folder.path() / "work" / "resumed"), "t-1 The goal is not met. $HOME `x`\n");
  int64_t input_tokens = 0;
  for (const auto& [kind, body] : events)
    if (kind == "usage") input_tokens += body.at("input_tokens").get<int64_t>();
  EXPECT_EQ(input_tokens, 500) << "a session's totals are not added up";
}

TEST_F(CommandAgentTest, SeesNothingOfTheRunButItsOwnFolder) {
  if (!why_no_isolation().empty()) GTEST_SKIP() << why_no_isolation();
  CommandAgent agent(
      setup("cat ../judge/secret 2>/dev/null && echo leaked; ls .. | tr '\\n' ' '; echo x > /etc/ks_agent_test "
            "2>/dev/null && echo wrote; echo y > mine; echo end"));
  EXPECT_EQ(agent.next(context).kind, AgentStep::Kind::kClaim);
  std::string said;
  for (const auto& [kind, body] : events)
    if (kind == "message" && body.at("role") == "agent") said += body.at("text").get<std::string>() + "\n";
  EXPECT_EQ(said.find("leaked"), std::string::npos);
  EXPECT_EQ(said.find("wrote"), std::string::npos);
  EXPECT_EQ(said.find("judge"), std::string::npos);
  EXPECT_THAT(said, testing::HasSubstr("work"));
  EXPECT_TRUE(base::fs::exists(folder.path() / "work" / "mine"));
}

TEST_F(CommandAgentTest, AnswersEvaluationsOverTheSocketWithFiguresAndTheQuestion) {
  CommandAgent agent(setup("sleep 1; echo end"));
  Json answer;
  std::thread client([&] {
    for (int i = 0; i < 50 && !base::fs::exists(folder.path() / "run.sock"); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    answer = request_run(folder.path() / "run.sock", {{"do", "evaluate"}, {"filter", "tall"}});
  });
  const auto step = agent.next(context);
  EXPECT_EQ(step.kind, AgentStep::Kind::kEvaluate);
  EXPECT_EQ(step.filter, "tall");
  context.history.push_back({.number = 1, .outcome = "judged", .geomean = 0.42});
  context.last_table = "tall 0.42x\n";
  context.messages.push_back({"tall: 0.42x.\nWhere does the time go?", "tall"});
  context.new_messages = 1;
  EXPECT_EQ(agent.next(context).kind, AgentStep::Kind::kClaim);
  client.join();
  EXPECT_EQ(answer.at("table"), "tall 0.42x\n");
  EXPECT_THAT(answer.at("message").get<std::string>(), testing::HasSubstr("Where does the time go?"));
}

TEST_F(CommandAgentTest, AFailureWithExitCodeZeroIsAFailure) {
  CommandAgent agent(setup(
      "echo '{\"type\":\"turn.failed\",\"error\":{\"message\":\"no\"}}'; echo a reason >&2; exit 0", "", "codex"));
  try {
    (void)agent.next(context);
    FAIL() << "three turns did nothing";
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), testing::AllOf(testing::HasSubstr("3 turns"), testing::HasSubstr("a reason")));
  }
}

TEST_F(CommandAgentTest, WaitsWhereTheProviderAsksAndGoesOn) {
  CommandAgent agent(
      setup(std::string("if [ ! -e once ]; then touch once; echo '{\"type\":\"error\",\"message\":\"status 429\"}'; "
                        "echo '{\"type\":\"turn.failed\",\"error\":{}}'; exit 0; fi;") +
                kCodexTurn,
            "", "codex"));
  EXPECT_EQ(agent.next(context).kind, AgentStep::Kind::kClaim);
  int waits = 0;
  for (const auto& [kind, body] : events) waits += body.value("what", "") == "rate_limit";
  EXPECT_EQ(waits, 1);
}

TEST_F(CommandAgentTest, EndsAProgramThatStaysAfterItsResultWithAllThatItLeft) {
  CommandAgent agent(setup(std::string(kCodexTurn) + "sleep 997 & sleep 997", "", "codex"));
  const int64_t start = base::monotonic_ns();
  EXPECT_EQ(agent.next(context).kind, AgentStep::Kind::kClaim);
  EXPECT_LT(base::monotonic_ns() - start, 10'000'000'000);
  base::SpawnOptions look;
  look.argv = {"pgrep", "-f", "^sleep 997$"};
  EXPECT_NE(base::run_process(look).exit_code, 0) << "something is still there";
}

TEST_F(CommandAgentTest, ATextThatSaysFailedCountsAgainstExitCode0AndOutput) {
  auto lying = setup("echo 'I am done.'; echo 'AuthenticationError: no' >&2; exit 0");
  lying.description.failed_text = {"AuthenticationError"};
  CommandAgent agent(std::move(lying));
  EXPECT_THROW((void)agent.next(context), Error);
}

TEST_F(CommandAgentTest, OneThatIsEvaluatedAfterItsTurnClaimsWhereThatMeetsTheGoal) {
  auto silent = setup("echo edited");
  silent.description.evaluate_after_turn = true;
  CommandAgent agent(std::move(silent));
  EXPECT_EQ(agent.next(context).kind, AgentStep::Kind::kEvaluate);
  context.history.push_back({.number = 1, .outcome = "judged"});
  context.goal_state = "not_met";
  EXPECT_EQ(agent.next(context).kind, AgentStep::Kind::kEvaluate);
  context.goal_state = "met";
  EXPECT_EQ(agent.next(context).kind, AgentStep::Kind::kClaim);
  EXPECT_EQ(agent.next(context).kind, AgentStep::Kind::kEvaluate) << "refused, it works on";
}

TEST_F(CommandAgentTest, HasAHomeOfItsOwnWithItsFilesAndThePersonsCredentialsAlone) {
  const base::TempFolder person;
  base::make_folder(person.path() / ".tool");
  base::write_file_atomically(person.path() / ".tool" / "auth.json", "credential");
  base::write_file_atomically(person.path() / ".tool" / "history", "private");
  const char* old = std::getenv("HOME");
  const std::string before = old == nullptr ? "" : old;
  ::setenv("HOME", person.path().c_str(), 1);
  auto with_home = setup("cat $HOME/.tool/auth.json; echo; cat $HOME/config; echo; ls $HOME/.tool");
  with_home.home = folder.path() / "agent" / "home";
  with_home.description.credentials = {".tool/auth.json"};
  with_home.description.home_files = {{"config", "socket {socket}"}};
  CommandAgent agent(std::move(with_home));
  (void)agent.next(context);
  ::setenv("HOME", before.c_str(), 1);
  std::string said;
  for (const auto& [kind, body] : events)
    if (kind == "message" && body.at("role") == "agent") said += body.at("text").get<std::string>() + "\n";
  EXPECT_EQ(said, "credential\nsocket " + (folder.path() / "run.sock").string() + "\nauth.json\n");
}

TEST_F(CommandAgentTest, AProgramThatIsNotThereIsSaidInWords) {
  auto missing = setup("");
  missing.description.start = {"no-such-agent-program"};
  CommandAgent agent(std::move(missing));
  EXPECT_THROW((void)agent.next(context), Error);
}

TEST_F(CommandAgentTest, PlantedSecretsReachNeitherEventsNorLogs) {
  ::setenv("PLANTED_API_KEY", "planted-secret-value", 1);
  auto with_key = setup("echo \"my key is $PLANTED_API_KEY\"");
  with_key.description.environment = {"PLANTED_API_KEY"};
  CommandAgent agent(std::move(with_key));
  (void)agent.next(context);
  std::string all = base::read_file(folder.path() / "logs" / "turn-0001.out");
  for (const auto& [kind, body] : events) all += body.dump();
  EXPECT_EQ(all.find("planted-secret-value"), std::string::npos);
  EXPECT_NE(all.find("[secret PLANTED_API_KEY]"), std::string::npos);
  ::unsetenv("PLANTED_API_KEY");
}

TEST(Descriptions, OfEveryNamedProgramAreReadable) {
  const auto all = all_descriptions();
  for (const char* name :
       {"claude-code", "codex", "cursor", "gemini-cli", "opencode", "openhands", "mini-swe-agent", "aider", "command"})
    EXPECT_TRUE(all.count(name)) << name;
  EXPECT_THROW((void)find_description("claud-code"), Error);
}

}  // namespace
}  // namespace ks::agents
