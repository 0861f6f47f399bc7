// The built-in agent's loop, against a model that is a list of answers.
#include "agents/http_agent.h"

#include <gmock/gmock.h>

namespace ks::agents {
namespace {

struct HttpAgentTest : testing::Test {
  base::TempFolder folder{"http"};
  std::vector<std::pair<std::string, Json>> events;
  std::vector<Json> requests;
  std::vector<std::string> answers;  ///< streams, in order
  AgentContext context;
  bool should_stop = false;

  HttpAgentTest() {
    for (const char* part : {"work", "logs", "agent", "judge"}) base::make_folder(folder.path() / part);
    base::write_file_atomically(folder.path() / "work" / "k.cpp", "int a = 1;\nint b = 2;\n");
    base::write_file_atomically(folder.path() / "judge" / "secret", "hidden grid\n");
    context.folder = (folder.path() / "work").string();
    context.candidate = "k.cpp";
    context.goal = "geomean >= 1";
  }

  HttpAgent agent() {
    HttpAgentSetup setup;
    setup.model.provider = "test", setup.model.model = "m", setup.model.wire = "chat";
    setup.model.key = "planted-key-of-the-test", setup.model.key_variable = "ODD_NAME", setup.model.first_wait_s = 0.01;
    setup.send = [this](const HttpRequest& request, const std::function<void(std::string_view)>& use) {
      requests.push_back(Json::parse(request.body));
      HttpAnswer answer;
      answer.status = requests.size() <= answers.size() ? 200 : 400;
      if (answer.status == 200) use(answers[requests.size() - 1]);
      return answer;
    };
    setup.prompt = "Make it faster.";
    setup.tools.isolation.run_folder = folder.path();
    setup.tools.isolation.work = folder.path() / "work";
    setup.tools.isolation.writable = {folder.path() / "agent"};
    setup.tools.kernelseek = "kernelseek";
    setup.tools.candidate = "k.cpp";
    setup.tools.home = setup.tools.cache = folder.path() / "agent";
    setup.conversation = folder.path() / "logs" / "conversation.jsonl";
    setup.sink = [this](const std::string& kind, const std::string&, const Json& body) {
      events.emplace_back(kind, body);
    };
    setup.should_stop = [this] { return should_stop; };
    return HttpAgent(std::move(setup));
  }

  static std::string says(const std::string& text, std::vector<std::pair<std::string, Json>> calls = {}) {
    Json listed = Json::array();
    for (size_t i = 0; i < calls.size(); ++i)
      listed.push_back({{"index", i},
                        {"id", fmt::format("call_{}", i)},
                        {"function", {{"name", calls[i].first}, {"arguments", calls[i].second.dump()}}}});
    const Json chunk = {{"id", "c"},
                        {"choices", Json::array({{{"delta", {{"content", text}, {"tool_calls", listed}}},
                                                  {"finish_reason", calls.empty() ? "stop" : "tool_calls"}}})},
                        {"usage", {{"prompt_tokens", 100}, {"completion_tokens", 10}}}};
    return "data: " + chunk.dump() + "\n\n";
  }

  std::string last_message() const { return requests.back().at("messages").back().at("content").get<std::string>(); }
  std::string all_events() const {
    std::string text;
    for (const auto& [kind, body] : events) text += kind + " " + body.dump() + "\n";
    return text;
  }
};

TEST_F(HttpAgentTest, RunsToolsThenAnEvaluationThenClaims) {
  answers = {says("I look.", {{"shell", {{"command", "cat k.cpp; echo more > new"}}}}),
             says("I have it judged.", {{"evaluate", {{"filter", "tall"}, {"changed", "nothing"}}}}),
             says("It is done."), says("It is done now.")};
  HttpAgent agent = this->agent();
  const AgentStep step = agent.next(context);
  EXPECT_EQ(step.kind, AgentStep::Kind::kEvaluate);
  EXPECT_EQ(step.filter, "tall");
  EXPECT_EQ(step.text, "nothing");
  EXPECT_THAT(last_message(), testing::HasSubstr("int a = 1;"));
  EXPECT_EQ(base::read_file(folder.path() / "work" / "new"), "more\n");
  context.history.push_back({.number = 1, .outcome = "judged"});
  context.last_table = "tall 0.42x\n";
  context.messages.push_back({"Where does the time go?", "tall"});
  context.new_messages = 1;
  const AgentStep claim = agent.next(context);
  EXPECT_EQ(claim.kind, AgentStep::Kind::kClaim);
  EXPECT_EQ(claim.text, "It is done.");
  EXPECT_THAT(last_message(),
              testing::AllOf(testing::HasSubstr("0.42x"), testing::HasSubstr("Where does the time go?")));
  context.messages.push_back({"Not yet.", "", true});
  EXPECT_EQ(agent.next(context).text, "It is done now.");
  EXPECT_EQ(last_message(), "Not yet.");
}

TEST_F(HttpAgentTest, ToolsSeeNothingOfTheRunNorOfOurEnvironment) {
  if (!why_no_isolation().empty()) GTEST_SKIP() << why_no_isolation();
  ::setenv("ODD_NAME", "planted-key-of-the-test", 1);
  answers = {says("", {{"shell", {{"command", "cat ../judge/secret; env; ln -s ../judge/secret link"}}}}),
             says("", {{"read", {{"path", "link"}}}}), says("end")};
  HttpAgent agent = this->agent();
  agent.next(context);
  EXPECT_THAT(all_events(), testing::Not(testing::HasSubstr("hidden grid")));
  EXPECT_THAT(all_events(), testing::Not(testing::HasSubstr("planted-key")));
}

TEST_F(HttpAgentTest, AKeyThatAToolShowsReachesNeitherModelNorTraceNorConversation) {
  base::write_file_atomically(folder.path() / "work" / "leak", "the key is planted-key-of-the-test.\n");
  answers = {says("", {{"shell", {{"command", "cat leak"}}}}), says("I saw planted-key-of-the-test"), says("x")};
  HttpAgent agent = this->agent();
  const AgentStep claim = agent.next(context);
  EXPECT_EQ(claim.text, "I saw [secret ODD_NAME]");
  EXPECT_THAT(requests.at(1).dump(), testing::Not(testing::HasSubstr("planted-key")));
  EXPECT_THAT(all_events(), testing::Not(testing::HasSubstr("planted-key")));
}

TEST_F(HttpAgentTest, AHelperWorksInAConversationOfItsOwnAndItsLastWordsAreTheResult) {
  answers = {says("", {{"helper", {{"task", "count the lines"}}}}),
             says("", {{"shell", {{"command", "wc -l < k.cpp"}}}}), says("There are 2."), says("Two lines.")};
  HttpAgent agent = this->agent();
  EXPECT_EQ(agent.next(context).text, "Two lines.");
  EXPECT_EQ(requests.at(1).at("messages").size(), 2u) << "a helper knows its task alone";
  EXPECT_THAT(requests.at(1).at("tools").dump(), testing::Not(testing::HasSubstr("\"helper\"")));
  EXPECT_EQ(last_message(), "There are 2.");
}

TEST_F(HttpAgentTest, GoesOnAfterACrashAndMakesNoCallTwice) {
  answers = {says("", {{"shell", {{"command", "echo x >> count"}}}, {"evaluate", Json::object()}}), says("after"),
             says("")};
  {
    HttpAgent agent = this->agent();
    EXPECT_EQ(agent.next(context).kind, AgentStep::Kind::kEvaluate);
  }  // the process dies while the run evaluates
  HttpAgent again = agent();
  EXPECT_EQ(again.next(context).text, "after");
  EXPECT_EQ(base::read_file(folder.path() / "work" / "count"), "x\n");
  EXPECT_THAT(last_message(), testing::HasSubstr("was not made again"));
  EXPECT_THAT(requests.back().dump(), testing::HasSubstr("Make it faster.")) << "the conversation is whole";
}

TEST_F(HttpAgentTest, BadCallsAreAnsweredWithWhatIsWrong) {
  answers = {says("", {{"shelll", Json::object()},
                       {"read", Json::object()},
                       {"edit", {{"path", "k.cpp"}, {"old", 5}, {"new", "x"}}}}),
             says("end")};
  HttpAgent agent = this->agent();
  agent.next(context);
  const std::string request = requests.back().dump();
  EXPECT_THAT(request, testing::HasSubstr("there is no tool"));
  EXPECT_EQ(requests.back().at("messages").size(), 6u) << "each call has its result";
}

TEST(FileTools, EditRefusesWhatIsNotThereOrNotUnique) {
  const base::TempFolder folder;
  const std::string path = (folder.path() / "f").string();
  base::write_file_atomically(path, "a b a\n");
  const auto edit = [&](const char* before, const char* after, bool all) {
    return file_tool("edit", {{"path", path}, {"old", before}, {"new", after}, {"all", all}});
  };
  EXPECT_TRUE(edit("c", "d", false).is_error);
  EXPECT_THAT(edit("a", "d", false).text, testing::HasSubstr("occurs 2 times"));
  EXPECT_EQ(base::read_file(path), "a b a\n");
  EXPECT_FALSE(edit("a", "aa", true).is_error);
  EXPECT_EQ(base::read_file(path), "aa b aa\n");
  EXPECT_THAT(file_tool("read", {{"path", path}}).text, testing::HasSubstr("1\taa b aa"));
}

TEST(FileTools, ALongResultLosesItsMiddleAndSaysSo) {
  const std::string text = std::string(100, 'a') + std::string(100, 'b');
  const std::string shown = shortened(text, 50);
  EXPECT_THAT(shown, testing::HasSubstr("[150 characters left out]"));
  EXPECT_EQ(shown.substr(0, 25), std::string(25, 'a'));
}

}  // namespace
}  // namespace ks::agents
