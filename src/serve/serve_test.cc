// The server of live pages: who is admitted, what is streamed, what reaches the run.
#include <gtest/gtest.h>
#include <httplib.h>

#include <atomic>
#include <thread>

#include "agents/request_socket.h"
#include "serve/server.h"
#include "trace/trace_writer.h"

namespace ks::serve {
namespace {

/// A run folder with a trace, and a server that watches it.
class ServeTest : public testing::Test {
 protected:
  void SetUp() override {
    writer_ = std::make_unique<trace::TraceWriter>(folder_.path() / "trace.jsonl");
    writer_->append("run_start", "main", {{"goal", "geomean >= 1"}, {"operator", "attention_fwd"}});
    server_ = std::make_unique<Server>(folder_.path(), ServerOptions{});
    thread_ = std::thread([this] { server_->serve(); });
    client_ = std::make_unique<httplib::Client>("127.0.0.1", server_->port());
    client_->set_read_timeout(10);
  }
  void TearDown() override {
    server_->stop();
    thread_.join();
  }
  std::string with_token(const std::string& path) const { return path + "?token=" + server_->token(); }

  base::TempFolder folder_;
  std::unique_ptr<trace::TraceWriter> writer_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<httplib::Client> client_;
  std::thread thread_;
};

TEST_F(ServeTest, AdmitsOnlyWhoHasTheToken) {
  ASSERT_TRUE(client_->Get(with_token("/")));
  EXPECT_EQ(client_->Get(with_token("/"))->status, 200);
  EXPECT_EQ(client_->Get("/")->status, 403);
  EXPECT_EQ(client_->Get("/?token=0123456789abcdef0123456789abcdef")->status, 403);
  EXPECT_EQ(client_->Post("/stop", "{}", "application/json")->status, 403);
  EXPECT_EQ(server_->token().size(), 32u);
}

TEST_F(ServeTest, RefusesOtherOriginsAndHosts) {
  EXPECT_EQ(client_->Post(with_token("/stop"), {{"Origin", "http://evil.example"}}, "{}", "application/json")->status,
            403);
  EXPECT_EQ(client_->Post(with_token("/stop"), {{"Sec-Fetch-Site", "cross-site"}}, "{}", "application/json")->status,
            403);
  EXPECT_EQ(client_->Get(with_token("/"), {{"Host", "evil.example"}})->status, 403);
}

TEST_F(ServeTest, SaysThatTheRunIsNotRunning) {
  const auto answer = client_->Post(with_token("/say"), R"({"text":"why?"})", "application/json");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 409);
}

TEST_F(ServeTest, PassesWordsAndWishesToTheRun) {
  agents::RequestSocket control(folder_.path() / "control.sock");
  std::atomic<bool> ending = false;
  std::vector<Json> got;
  std::thread run([&] {
    while (!ending)
      if (auto request = control.next(0.05)) {
        if (request->body.value("do", "") != "status") got.push_back(request->body);
        const bool is_long = request->body.value("text", "").size() > 1000;
        control.reply(request->connection, is_long ? Json{{"ok", false}, {"error", "too long"}} : Json{{"ok", true}});
      }
  });
  EXPECT_EQ(client_->Post(with_token("/say"), R"({"text":"which scenario is slowest?"})", "application/json")->status,
            200);
  EXPECT_EQ(client_->Post(with_token("/pause"), "{}", "application/json")->status, 200);
  EXPECT_EQ(client_->Post(with_token("/say"), "not json", "application/json")->status, 409);
  EXPECT_EQ(
      client_->Post(with_token("/say"), Json{{"text", std::string(2000, 'x')}}.dump(), "application/json")->status,
      409);
  EXPECT_GE(client_->Post(with_token("/say"), std::string(1 << 20, 'x'), "application/json")->status, 400);
  ending = true;
  run.join();
  ASSERT_EQ(got.size(), 3u);
  EXPECT_EQ(got[0], (Json{{"do", "say"}, {"text", "which scenario is slowest?"}}));
  EXPECT_EQ(got[1], (Json{{"do", "pause"}}));
}

TEST_F(ServeTest, StreamsWhatIsAppended) {
  std::string stream;
  bool appended = false;
  client_->Get(with_token("/events"), [&](const char* data, size_t size) {
    stream.append(data, size);
    if (!appended && stream.find("event: page") != std::string::npos && stream.ends_with("\n\n")) {
      appended = true;
      writer_->append("question", "main", {{"id", "gt-worst-first"}, {"category", "gap_triage"}, {"text", "Why?"}});
    }
    return stream.find("gt-worst-first") == std::string::npos;
  });
  EXPECT_TRUE(appended);
  EXPECT_NE(stream.find("gt-worst-first"), std::string::npos);
}

TEST_F(ServeTest, SeveralWatchAtOnceAndTwoServersToo) {
  Server other(folder_.path(), ServerOptions{});
  EXPECT_NE(other.port(), server_->port());
  EXPECT_THROW(Server(folder_.path(), ServerOptions{.port = server_->port()}), Error);
  std::atomic<int> seen = 0;
  std::vector<std::thread> watchers;
  for (int i = 0; i < 6; ++i)
    watchers.emplace_back([&] {
      httplib::Client client("127.0.0.1", server_->port());
      std::string stream;
      client.Get(with_token("/events"), [&](const char* data, size_t size) {
        stream.append(data, size);
        return stream.find("event: page") == std::string::npos;
      });
      seen += stream.find("event: page") != std::string::npos;
    });
  for (auto& watcher : watchers) watcher.join();
  EXPECT_EQ(seen, 6);
}

TEST(Serve, RefusesAFolderThatIsNoRun) {
  base::TempFolder folder;
  EXPECT_THROW(Server(folder.path(), ServerOptions{}), Error);
}

}  // namespace
}  // namespace ks::serve
