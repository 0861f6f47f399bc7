// The protocol, over pipes, with tools of the test's own.
#include "mcp/server.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <chrono>
#include <thread>

namespace ks::mcp {
namespace {

/// Sends lines, ends the input after `pause_s`, and returns every message that came.
std::vector<Json> talk(const std::vector<std::string>& lines, double pause_s = 0.3) {
  std::vector<Tool> tools;
  const Json schema = {
      {"type", "object"}, {"properties", {{"text", {{"type", "string"}}}}}, {"required", Json::array({"text"})}};
  tools.push_back({"echo", "Echo", "Says it back.", schema, [](const Json& arguments, const CallContext&) {
                     return CallResult{arguments.at("text").get<std::string>(), false, {{"length", 1}}};
                   }});
  tools.push_back({"slow",
                   "Slow",
                   "Takes until it is cancelled.",
                   {{"properties", Json::object()}, {"required", Json::array()}},
                   [](const Json&, const CallContext& context) {
                     for (int i = 1; !*context.is_cancelled; ++i) {
                       context.progress(i, "at work");
                       std::this_thread::sleep_for(std::chrono::milliseconds(20));
                     }
                     return CallResult{"cancelled", true, Json()};
                   }});
  int in[2], out[2];
  EXPECT_EQ(::pipe(in), 0);
  EXPECT_EQ(::pipe(out), 0);
  std::thread server([&] {
    serve(tools, in[0], out[1]);
    ::close(out[1]);
  });
  for (const auto& line : lines) {
    const std::string text = line + "\n";
    EXPECT_EQ(::write(in[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
    std::this_thread::sleep_for(std::chrono::milliseconds(60));
  }
  std::this_thread::sleep_for(std::chrono::duration<double>(pause_s));
  ::close(in[1]);
  std::string all;
  char buffer[4096];
  for (ssize_t got = 0; (got = ::read(out[0], buffer, sizeof buffer)) > 0;)
    all.append(buffer, static_cast<size_t>(got));
  server.join();
  ::close(in[0]), ::close(out[0]);
  std::vector<Json> messages;
  for (size_t at = 0, end = 0; (end = all.find('\n', at)) != std::string::npos; at = end + 1)
    messages.push_back(Json::parse(all.substr(at, end - at)));
  return messages;
}

constexpr const char* kEcho =
    R"({"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hello"}}})";

TEST(McpServer, ShakesHandsInTheVersionThatItIsAskedForIfItKnowsIt) {
  const auto messages =
      talk({R"({"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26"}})",
            R"({"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"1999-01-01"}})"},
           0);
  ASSERT_EQ(messages.size(), 2u);
  EXPECT_EQ(messages[0].at("result").at("protocolVersion"), "2025-03-26");
  EXPECT_EQ(messages[1].at("result").at("protocolVersion"), "2025-11-25");
}

TEST(McpServer, AnswersCallsAndBatchesWithAndWithoutAHandshake) {
  const auto messages = talk(
      {kEcho, R"([{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/initialized"}])",
       R"({"jsonrpc":"2.0","id":"d","method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}})"});
  ASSERT_EQ(messages.size(), 3u);
  EXPECT_EQ(messages[0].at("id"), 7);
  EXPECT_EQ(messages[0].at("result").at("content").at(0).at("text"), "hello");
  EXPECT_EQ(messages[0].at("result").at("structuredContent").at("length"), 1);
  EXPECT_TRUE(messages[1].is_array());
  EXPECT_EQ(messages[2].at("result").at("resultType"), "complete");
}

TEST(McpServer, WhatIsWrongIsSaidInTheProtocolsOwnNumbers) {
  const std::vector<std::pair<std::string, int>> cases = {
      {"{", -32700},
      {R"({"id":1,"method":"ping"})", -32600},
      {R"({"jsonrpc":"2.0","id":1,"method":"nothing"})", -32601},
      {R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"none"}})", -32602},
      {R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{}}})", -32602},
      {R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":1}}})", -32602},
      {R"({"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"1"}}})",
       -32022}};
  for (const auto& [line, code] : cases) {
    const auto messages = talk({line}, 0);
    ASSERT_EQ(messages.size(), 1u) << line;
    EXPECT_EQ(messages[0].at("error").at("code"), code) << line;
  }
}

TEST(McpServer, ACallTellsItsProgressAndIsCancelledWithoutAReply) {
  const auto messages =
      talk({R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow","_meta":{"progressToken":"p"}}})",
            R"({"jsonrpc":"2.0","id":2,"method":"ping"})",
            R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}})", kEcho});
  double last = 0;
  int replies = 0;
  for (const auto& message : messages) {
    if (message.contains("method")) {
      EXPECT_GT(message.at("params").at("progress").get<double>(), last);
      last = message.at("params").at("progress").get<double>();
    } else {
      EXPECT_NE(message.at("id"), 1);
      ++replies;
    }
  }
  EXPECT_GT(last, 1);
  EXPECT_EQ(replies, 2) << "the ping while it worked, and the call after it";
}

TEST(McpServer, EndsWithItsInputAlthoughACallIsAtWork) {
  talk({R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow"}})"}, 0);
}

}  // namespace
}  // namespace ks::mcp
