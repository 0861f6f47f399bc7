// The contracts of the agent programs' stop hooks, one by one.
#include "hook/stop_hook.h"

#include <gmock/gmock.h>

#include "judge/facts.h"

namespace ks::hook {
namespace {

struct StopHookTest : testing::Test {
  base::TempFolder folder;
  judge::Facts facts;

  StopHookTest() {
    base::write_file_atomically(folder.path() / "k.cpp", "int a;");
    facts = {.goal = "geomean >= 1",
             .goal_state = "not_met",
             .evaluation = 2,
             .evaluated_hash = judge::content_hash(folder.path() / "k.cpp"),
             .figures = {"geomean (0.42) >= 1: not met"},
             .question = "Where does the time go?",
             .candidate = (folder.path() / "k.cpp").string()};
    tell();
  }
  void tell() { base::write_file_atomically(folder.path() / "facts.json", base::to_line(judge::to_json(facts))); }
  Reply ask(const std::string& input) { return answer(input, folder.path(), folder.path()); }
};

constexpr const char* kClaudeCode =
    R"({"session_id":"s","transcript_path":"/t","cwd":"/w","prompt_id":"p","permission_mode":"default","hook_event_name":"Stop","stop_hook_active":false,"last_assistant_message":"done","background_tasks":[]})";
constexpr const char* kCodex =
    R"({"session_id":"s","turn_id":"t","transcript_path":"/t","cwd":"/w","hook_event_name":"Stop","model":"m","permission_mode":"never","stop_hook_active":true,"last_assistant_message":"done"})";
constexpr const char* kCursor =
    R"({"conversation_id":"c","hook_event_name":"stop","status":"completed","loop_count":0})";
constexpr const char* kGemini =
    R"({"session_id":"s","hook_event_name":"AfterAgent","prompt":"p","prompt_response":"r","stop_hook_active":false})";

TEST_F(StopHookTest, RefusesInEachProgramsOwnWords) {
  for (const char* input : {kClaudeCode, kCodex}) {
    const Reply reply = ask(input);
    const Json json = base::parse_json(reply.out, "reply");
    EXPECT_EQ(reply.exit_code, 0);
    EXPECT_EQ(json.at("decision"), "block");
    EXPECT_EQ(json.size(), 2u) << "unknown keys make a strict program ignore the answer";
    EXPECT_THAT(json.at("reason").get<std::string>(),
                testing::AllOf(testing::HasSubstr("0.42"), testing::HasSubstr("Where does")));
  }
  base::fs::remove(folder.path() / "refused.json");
  EXPECT_THAT(base::parse_json(ask(kCursor).out, "reply").at("followup_message").get<std::string>(),
              testing::HasSubstr("0.42"));
  EXPECT_EQ(base::parse_json(ask(kGemini).out, "reply").at("decision"), "deny");
}

TEST_F(StopHookTest, UnknownProgramsGetExitCodeTwoAndTheTextOnStandardError) {
  const Reply reply = ask("");
  EXPECT_EQ(reply.exit_code, 2);
  EXPECT_EQ(reply.out, "");
  EXPECT_THAT(reply.err, testing::HasSubstr("0.42"));
}

TEST_F(StopHookTest, LetsTheTurnEndWhenTheGoalIsMetByTheLastEvaluationOfTheseFiles) {
  facts.goal_state = "met";
  tell();
  EXPECT_EQ(ask(kClaudeCode).out, "{}\n");
  base::write_file_atomically(folder.path() / "k.cpp", "int b;");
  EXPECT_THAT(ask(kClaudeCode).out, testing::HasSubstr("changed after evaluation 2"));
}

TEST_F(StopHookTest, NeverRefusesPastItsCapHoweverOftenItIsAsked) {
  int refused = 0, longest = 0, in_a_row = 0;
  for (int i = 0; i < 20; ++i) {
    const bool is_refusal = ask(kCodex).out != "{}\n";
    refused += is_refusal;
    in_a_row = is_refusal ? in_a_row + 1 : 0;
    longest = std::max(longest, in_a_row);
  }
  EXPECT_EQ(longest, facts.cap);
  EXPECT_LT(refused, 20);
}

TEST_F(StopHookTest, LetsHelpersAndInterruptedTurnsEnd) {
  EXPECT_EQ(ask(R"({"hook_event_name":"SubagentStop","agent_id":"a"})").out, "{}\n");
  EXPECT_EQ(ask(R"({"hook_event_name":"stop","status":"aborted","loop_count":1})").out, "{}\n");
}

TEST_F(StopHookTest, FailsOpenWhereNothingIsKnown) {
  base::fs::remove(folder.path() / "facts.json");
  const Reply reply = ask(kClaudeCode);
  EXPECT_EQ(reply.out, "{}\n");
  EXPECT_EQ(reply.exit_code, 0);
  EXPECT_THAT(reply.err, testing::HasSubstr("facts.json"));
  EXPECT_EQ(ask("{\"hook_event_name\":").exit_code, 0);
}

}  // namespace
}  // namespace ks::hook
