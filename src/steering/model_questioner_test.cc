// The questioner that is a model: over loopback HTTP, to a server that answers what the test says.
#include <gmock/gmock.h>
#include <httplib.h>

#include <cstdlib>
#include <thread>

#include "base/error.h"
#include "steering/questioner.h"

namespace ks::steering {
namespace {

using testing::HasSubstr;

/// A server of chat completions that gives one reply to everything.
class FakeServer {
 public:
  FakeServer() {
    http_.Post("/v1/chat/completions", [this](const httplib::Request& request, httplib::Response& response) {
      seen.push_back(request.body);
      key = request.get_header_value("Authorization");
      response.status = status;
      response.set_content(raw.empty() ? base::to_line(Json{{"choices", {{{"message", {{"content", reply}}}}}},
                                                            {"usage", {{"total_tokens", 321}}}})
                                       : raw,
                           "application/json");
    });
    port_ = http_.bind_to_any_port("127.0.0.1");
    thread_ = std::thread([this] { http_.listen_after_bind(); });
    while (!http_.is_running()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ~FakeServer() {
    http_.stop();
    thread_.join();
  }
  std::string url() const { return fmt::format("http://127.0.0.1:{}/v1/", port_); }

  std::string reply, raw, key;
  int status = 200;
  std::vector<std::string> seen;

 private:
  httplib::Server http_;
  int port_ = 0;
  std::thread thread_;
};

/// A state in which several entries of this project's bank fire.
SteeringState state_to_ask_in() {
  SteeringState state;
  const std::map<std::string, signals::Value> values = {
      {"geomean", 0.5},        {"goal", 1.0},          {"ratio_min", 0.1},
      {"ratio_max", 1.4},      {"ratio_spread", 14.0}, {"n_configs", 12.0},
      {"n_correct_frac", 1.0}, {"noise_rel", 0.01},    {"evals_since_improve", 7.0},
      {"n_evals", 20.0}};
  for (const auto& [name, value] : values) state.signals.set(name, value, "evaluation 20");
  state.n_evaluations = 20;
  state.evidence = [](const std::vector<std::string>&) {
    signals::Evidence evidence;
    evidence.facts.push_back({"rows: 0.10x to 1.40x of the fastest", "evaluation 20"});
    evidence.slots = {{"config", "wide"}, {"config_a", "wide"}, {"config_b", "tall"}};
    evidence.focus = "wide";
    return evidence;
  };
  state.names = {"wide", "tall"};
  return state;
}

struct ModelQuestionerTest : testing::Test {
  FakeServer server;
  Bank bank = load_bank(bank_folder());
  std::vector<Json> notes;

  std::unique_ptr<Questioner> questioner() {
    QuestionerOptions options;
    options.model = {server.url(), "small", "", 5};
    options.note = [this](const Json& note) { notes.push_back(note); };
    return make_questioner("model", bank, options);
  }
};

TEST_F(ModelQuestionerTest, AsksTheEntryWhoseIdTheModelWrote) {
  const auto offered = best_messages(bank, state_to_ask_in(), kOffered);
  ASSERT_GE(offered.size(), 2u);
  server.reply = " " + offered[1].id + "\n";
  const auto message = questioner()->next(state_to_ask_in());
  ASSERT_TRUE(message);
  EXPECT_EQ(message->id, offered[1].id);
  EXPECT_EQ(message->question, offered[1].question);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(notes[0].at("what"), "model_chose");
  EXPECT_EQ(notes[0].at("tokens"), 321);
  // The server saw every offered entry with its facts, and nothing else of the run.
  ASSERT_EQ(server.seen.size(), 1u);
  for (const auto& one : offered) EXPECT_THAT(server.seen[0], HasSubstr(one.id));
  EXPECT_THAT(server.seen[0], HasSubstr("0.10x to 1.40x"));
}

TEST_F(ModelQuestionerTest, RefusesAndCountsEverythingElse) {
  const auto state = state_to_ask_in();
  const std::string id = best_messages(bank, state, 1).front().id;
  for (const std::string& reply : {std::string("Use larger tiles."), "I choose " + id, id + ".", std::string(),
                                   std::string("no-such-entry"), std::string(100000, 'x')}) {
    server.reply = reply;
    EXPECT_FALSE(questioner()->next(state)) << reply.substr(0, 40);
  }
  ASSERT_EQ(notes.size(), 6u);
  for (const auto& note : notes) {
    EXPECT_EQ(note.at("what"), "model_refused");
    EXPECT_LE(note.at("reply").get<std::string>().size(), 200u);
  }
}

TEST_F(ModelQuestionerTest, AnEntryOfTheBankThatWasNotOfferedIsRefused) {
  const auto state = state_to_ask_in();
  const auto offered = best_messages(bank, state, kOffered);
  for (const auto& question : bank.questions) {
    if (std::any_of(offered.begin(), offered.end(), [&](const auto& one) { return one.id == question.id; })) continue;
    server.reply = question.id;
    break;
  }
  EXPECT_FALSE(questioner()->next(state));
  EXPECT_EQ(notes.at(0).at("what"), "model_refused");
}

TEST_F(ModelQuestionerTest, NoneIsAnAnswerAndNothingIsAsked) {
  server.reply = "none";
  EXPECT_FALSE(questioner()->next(state_to_ask_in()));
  EXPECT_EQ(notes.at(0).at("what"), "model_chose");
}

TEST_F(ModelQuestionerTest, FaultsOfTheServerAreRefusalsNotErrors) {
  server.status = 500;
  EXPECT_FALSE(questioner()->next(state_to_ask_in()));
  server.status = 200;
  server.raw = "{\"choices\": []}";
  EXPECT_FALSE(questioner()->next(state_to_ask_in()));
  server.raw = "not json";
  EXPECT_FALSE(questioner()->next(state_to_ask_in()));
  ModelQuestioner nobody{"http://127.0.0.1:9/v1", "small", "", 2};
  const auto choice = choose_by_model(nobody, best_messages(bank, state_to_ask_in(), 2), post_json);
  EXPECT_THAT(choice.refused, HasSubstr("no answer"));
  ASSERT_EQ(notes.size(), 3u);
  for (const auto& note : notes) EXPECT_EQ(note.at("what"), "model_refused");
}

TEST_F(ModelQuestionerTest, SendsTheKeyOfTheEnvironmentAndRecordsItNowhere) {
  ::setenv("KS_TEST_MODEL_KEY", "planted-key", 1);
  QuestionerOptions options;
  options.model = {server.url(), "small", "KS_TEST_MODEL_KEY", 5};
  options.note = [this](const Json& note) { notes.push_back(note); };
  server.reply = "none";
  (void)make_questioner("model", bank, options)->next(state_to_ask_in());
  EXPECT_EQ(server.key, "Bearer planted-key");
  EXPECT_EQ(notes.at(0).dump().find("planted-key"), std::string::npos);
  ::unsetenv("KS_TEST_MODEL_KEY");
  EXPECT_THROW((void)make_questioner("model", bank, options), Error);
}

TEST_F(ModelQuestionerTest, WithoutAnAddressItSaysWhatTheTaskNeeds) {
  try {
    (void)make_questioner("model", bank);
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("[questioner_model]"));
  }
  QuestionerOptions options;
  options.model = {"file:///etc/passwd", "small", "", 5};
  EXPECT_THROW((void)make_questioner("model", bank, options), Error);
}

}  // namespace
}  // namespace ks::steering
