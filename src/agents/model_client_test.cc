// Wires and the client, against streams as the three dialects send them, and against servers that misbehave.
#include "agents/model_client.h"

#include <gmock/gmock.h>

#include <map>

#include "agents/event_stream.h"

namespace ks::agents {
namespace {

constexpr const char* kChat =
    R"(data: {"id":"c1","choices":[{"index":0,"delta":{"role":"assistant","content":"I "}}]}

data: {"id":"c1","choices":[{"index":0,"delta":{"content":"look."}}]}

data: {"id":"c1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"shell","arguments":""}}]}}]}

data: {"id":"c1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"comm"}}]}}]}

data: {"id":"c1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"and\":\"ls\"}"}}]}}]}

data: {"id":"c1","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}

data: {"id":"c1","choices":[],"usage":{"prompt_tokens":100,"completion_tokens":10,"prompt_tokens_details":{"cached_tokens":40}}}

data: [DONE]

)";

constexpr const char* kResponses =
    R"(event: response.created
data: {"type":"response.created","response":{"id":"r1","status":"in_progress"}}

event: response.output_item.done
data: {"type":"response.output_item.done","item":{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"opaque"}}

event: response.output_item.done
data: {"type":"response.output_item.done","item":{"type":"message","id":"m1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"I look."}]}}

event: response.output_item.done
data: {"type":"response.output_item.done","item":{"type":"function_call","id":"f1","call_id":"call_1","name":"shell","arguments":"{\"command\":\"ls\"}","status":"completed"}}

event: response.completed
data: {"type":"response.completed","response":{"id":"r1","usage":{"input_tokens":100,"input_tokens_details":{"cached_tokens":40},"output_tokens":10,"output_tokens_details":{"reasoning_tokens":4}}}}

)";

constexpr const char* kMessages =
    R"(event: message_start
data: {"type":"message_start","message":{"id":"m1","usage":{"input_tokens":60,"cache_read_input_tokens":40,"cache_creation_input_tokens":7,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"sealed"}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

: a comment

event: content_block_start
data: {"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"I look."}}

event: content_block_stop
data: {"type":"content_block_stop","index":1}

event: content_block_start
data: {"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"call_1","name":"shell","input":{}}}

event: content_block_delta
data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"command\":"}}

event: content_block_delta
data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"\"ls\"}"}}

event: content_block_stop
data: {"type":"content_block_stop","index":2}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":10}}

event: message_stop
data: {"type":"message_stop"}

)";

struct Dialect {
  const char* wire;
  const char* stream;
};
constexpr Dialect kDialects[] = {{"chat", kChat}, {"responses", kResponses}, {"messages", kMessages}};

ModelAnswer read(const Dialect& dialect, std::string_view bytes, size_t step) {
  const auto wire = make_wire(dialect.wire, "test");
  const auto reader = wire->reader();
  EventStream stream([&](const std::string& name, const std::string& data) { reader->event(name, data); });
  for (size_t at = 0; at < bytes.size(); at += step) stream.feed(bytes.substr(at, step));
  return reader->finish();
}

TEST(Wires, ReadTheSameAnswerFromAllThreeWhereverTheBytesAreSplit) {
  for (const auto& dialect : kDialects)
    for (const size_t step : {1, 7, 100000}) {
      const ModelAnswer answer = read(dialect, dialect.stream, step);
      EXPECT_TRUE(answer.is_whole) << dialect.wire;
      EXPECT_EQ(answer.text, "I look.") << dialect.wire;
      ASSERT_EQ(answer.calls.size(), 1u) << dialect.wire;
      EXPECT_EQ(answer.calls[0].id, "call_1");
      EXPECT_EQ(answer.calls[0].name, "shell");
      EXPECT_EQ(Json::parse(answer.calls[0].arguments), (Json{{"command", "ls"}}));
      EXPECT_EQ(answer.usage.fresh, 60) << dialect.wire;
      EXPECT_EQ(answer.usage.cached, 40) << dialect.wire;
      EXPECT_EQ(answer.usage.output, 10) << dialect.wire;
    }
}

TEST(Wires, AnAnswerWhoseEndIsMissingIsNeverWhole) {
  for (const auto& dialect : kDialects) {
    const std::string whole = dialect.stream;
    // The end of an answer is its last event but one in chat (usage follows), else its last.
    const std::string mark = std::string(dialect.wire) == "chat"        ? "\"finish_reason\":\"tool_calls\""
                             : std::string(dialect.wire) == "responses" ? "data: {\"type\":\"response.completed\""
                                                                        : "data: {\"type\":\"message_stop\"";
    const size_t end = whole.find(mark);
    ASSERT_NE(end, std::string::npos);
    for (size_t length = 0; length < end; length += 13)
      EXPECT_FALSE(read(dialect, whole.substr(0, length), 64).is_whole) << dialect.wire << " " << length;
  }
}

TEST(Wires, GiveAnAnswerBackAsItCame) {
  ModelSpec spec;
  for (const auto& dialect : kDialects) {
    const ModelAnswer answer = read(dialect, dialect.stream, 50);
    Entry result{Entry::Role::kTool, "kernel.cpp"};
    result.call_id = "call_1";
    const std::vector<Entry> entries = {
        {Entry::Role::kUser, "go"}, {Entry::Role::kAgent, answer.text, answer.calls, answer.raw}, result};
    const std::string request = make_wire(dialect.wire, "test")->request(spec, "system", entries, {}).dump();
    EXPECT_THAT(request, testing::HasSubstr("call_1")) << dialect.wire;
    EXPECT_THAT(request, testing::HasSubstr("kernel.cpp")) << dialect.wire;
    const std::string sealed =
        std::map<std::string, std::string>{{"responses", "opaque"}, {"messages", "sealed"}}[dialect.wire];
    EXPECT_THAT(request, testing::HasSubstr(sealed)) << dialect.wire;
  }
}

/// A server that plays answers in order.
struct Server {
  std::vector<std::pair<HttpAnswer, std::string>> answers;  ///< and what is streamed before
  std::vector<std::string> requests;
  std::vector<double> waits;
  std::vector<std::string> notes;

  ModelClient client(int attempts = 3) {
    ModelSpec spec;
    spec.provider = "test", spec.model = "m", spec.wire = "chat", spec.attempts = attempts, spec.rate_limit_minutes = 1;
    spec.price = Price{1, 0.1, 1.25, 5};
    ModelClient::Setup setup{spec, {}, [] { return false; }, [this](double s) { waits.push_back(s); }, {}};
    setup.note = [this](const std::string& what, const std::string&) { notes.push_back(what); };
    setup.send = [this](const HttpRequest& request, const std::function<void(std::string_view)>& use) {
      requests.push_back(request.body);
      const auto [answer, stream] = answers.at(std::min(requests.size(), answers.size()) - 1);
      use(stream);
      return answer;
    };
    return ModelClient(std::move(setup));
  }
};

HttpAnswer status(int code, const std::string& body = "", double after = 0) {
  HttpAnswer answer;
  answer.status = code, answer.body = body, answer.retry_after_s = after;
  return answer;
}

TEST(ModelClient, ACutStreamIsDroppedAndTheSameRequestSentAgain) {
  Server server;
  const std::string stream = kChat;
  server.answers = {{status(200), stream.substr(0, stream.find("\"finish_reason\""))}, {status(200), stream}};
  const auto answer = server.client().ask("s", {{Entry::Role::kUser, "go"}}, {});
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->text, "I look.") << "the half answer is not part of it";
  EXPECT_EQ(answer->calls.size(), 1u);
  ASSERT_EQ(server.requests.size(), 2u);
  EXPECT_EQ(server.requests[0], server.requests[1]);
}

TEST(ModelClient, WaitsForARateLimitAsLongAsTheServerAsks) {
  Server server;
  server.answers = {{status(429, R"({"error":{"type":"rate_limit_error","message":"slow"}})", 7), ""},
                    {status(200), kChat}};
  ASSERT_TRUE(server.client(1).ask("s", {}, {}));
  EXPECT_EQ(server.waits, std::vector<double>{7});
  EXPECT_EQ(server.notes, std::vector<std::string>{"rate_limit"});
}

TEST(ModelClient, GivesUpAfterItsAttemptsAndSaysWhy) {
  Server server;
  server.answers = {{status(500, R"({"error":{"message":"broken inside"}})"), ""}};
  try {
    server.client(3).ask("s", {}, {});
    FAIL() << "an error was expected";
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), testing::HasSubstr("broken inside"));
  }
  EXPECT_EQ(server.requests.size(), 3u);
}

TEST(ModelClient, ARateLimitForEverEndsAfterItsMinutes) {
  Server server;
  server.answers = {{status(429, R"({"error":{"type":"rate_limit_error"}})", 20), ""}};
  EXPECT_THROW(server.client(1).ask("s", {}, {}), Error);
  EXPECT_EQ(server.waits.size(), 3u) << "a minute in steps of twenty seconds";
}

TEST(ModelClient, AWrongKeyIsNotTriedTwice) {
  Server server;
  server.answers = {{status(401, R"({"error":{"message":"no such key"}})"), ""}};
  EXPECT_THROW(server.client().ask("s", {}, {}), Error);
  EXPECT_EQ(server.requests.size(), 1u);
}

TEST(ModelClient, AnErrorInsideAStreamThatBeganWellIsAnError) {
  Server server;
  server.answers = {{status(200), "data: {\"error\":{\"type\":\"overloaded_error\",\"message\":\"busy\"}}\n\n"},
                    {status(200), kChat}};
  ASSERT_TRUE(server.client().ask("s", {}, {}));
  EXPECT_EQ(server.requests.size(), 2u);
}

TEST(ModelClient, CostsAreWorkedOutPerKindOfToken) {
  Server server;
  TokenUsage usage;
  usage.fresh = 1000000, usage.cached = 2000000, usage.cache_write = 400000, usage.output = 100000;
  EXPECT_DOUBLE_EQ(server.client().cost(usage).value(), 1 + 0.2 + 0.5 + 0.5);
}

TEST(Models, APriceIsThatOfTheSameModelAndNotOfAShorterName) {
  const base::TempFolder folder;
  const auto file = folder.path() / "p.toml";
  base::write_file_atomically(file,
                              "name = \"p\"\nwire = \"chat\"\nurl = \"http://x/\"\n[price]\n\"gpt-5\" = { input = 1, "
                              "output = 2 }\n\"gpt-5-mini\" = { input = 3, output = 4 }\n");
  EXPECT_EQ(read_model(file, "gpt-5").price->input, 1);
  EXPECT_EQ(read_model(file, "gpt-5-2026-01-02").price->input, 1);
  EXPECT_EQ(read_model(file, "gpt-5-mini").price->input, 3);
  EXPECT_FALSE(read_model(file, "gpt-5.4").price);
  EXPECT_EQ(read_model(file, "gpt-5").url, "http://x");
  base::write_file_atomically(file, "name = \"p\"\nwire = \"chat\"\nurll = \"http://x/\"\n");
  try {
    read_model(file, "m");
    FAIL() << "an error was expected";
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), testing::HasSubstr("p.toml:3: unknown key \"urll\"; did you mean \"url\""));
  }
}

}  // namespace
}  // namespace ks::agents
