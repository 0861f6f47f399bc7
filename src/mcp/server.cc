#include "mcp/server.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <mutex>
#include <thread>

#include "base/clock.h"
#include "base/error.h"

namespace ks::mcp {
namespace {

constexpr int kParseError = -32700, kInvalidRequest = -32600, kNoMethod = -32601, kBadParameters = -32602;
constexpr int kUnsupportedVersion = -32022;
constexpr size_t kMostLine = 16u << 20;
const std::vector<std::string> kHandshakeVersions = {"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"};
constexpr const char* kVersionWithoutHandshake = "2026-07-28";
constexpr const char* kVersionKey = "io.modelcontextprotocol/protocolVersion";
constexpr const char* kInstructions =
    "KernelSeek judges compute kernels. evaluate says whether a candidate is right and how fast it is against its "
    "rivals; profile and disassemble show what it does; history lists earlier evaluations; ask gives the question that "
    "the evidence calls for.";

/// What a request asks for beside its method.
Json member(const Json& object, const char* key) {
  if (!object.is_object()) return {};
  const auto found = object.find(key);
  return found == object.end() ? Json() : *found;
}

class Server {
 public:
  Server(const std::vector<Tool>& tools, int in_fd, int out_fd) : tools_(tools), in_(in_fd), out_(out_fd) {}

  void run() {
    std::string pending;
    char buffer[65536];
    while (true) {
      const ssize_t got = ::read(in_, buffer, sizeof buffer);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) break;
      pending.append(buffer, static_cast<size_t>(got));
      for (size_t end = pending.find('\n'); end != std::string::npos; end = pending.find('\n')) {
        take_line(pending.substr(0, end));
        pending.erase(0, end + 1);
      }
      if (pending.size() > kMostLine) {
        send(error(Json(), kInvalidRequest, "a message is too long"));
        break;
      }
    }
    end_calls();
  }

 private:
  struct Call {
    Json id;
    std::atomic<bool> is_cancelled = false, is_done = false;
    std::thread thread;
  };

  static Json error(const Json& id, int code, const std::string& message, const Json& data = Json()) {
    Json body = {{"code", code}, {"message", message}};
    if (!data.is_null()) body["data"] = data;
    return {{"jsonrpc", "2.0"}, {"id", id}, {"error", body}};
  }

  static Json result(const Json& id, Json body) {
    body["resultType"] = "complete";  // versions before it pass it over
    return {{"jsonrpc", "2.0"}, {"id", id}, {"result", std::move(body)}};
  }

  void send(const Json& message) {
    const std::string text = base::to_line(message) + "\n";
    const std::lock_guard guard(out_mutex_);
    for (size_t sent = 0; sent < text.size();) {
      const ssize_t got = ::write(out_, text.data() + sent, text.size() - sent);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return;  // the client is gone; the end of the input follows
      sent += static_cast<size_t>(got);
    }
  }

  void take_line(const std::string& line) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) return;
    const Json message = Json::parse(line, nullptr, false);
    if (message.is_discarded()) return send(error(Json(), kParseError, "not JSON"));
    if (!message.is_array()) {
      if (const Json reply = take(message); !reply.is_null()) send(reply);
      return;
    }
    if (message.empty()) return send(error(Json(), kInvalidRequest, "an empty batch"));
    Json replies = Json::array();  // calls of tools in a batch answer by themselves
    for (const Json& one : message)
      if (Json reply = take(one); !reply.is_null()) replies.push_back(std::move(reply));
    if (!replies.empty()) send(replies);
  }

  /// The reply, or null where there is none (yet).
  Json take(const Json& message) {
    const Json id = member(message, "id"), method = member(message, "method"), params = member(message, "params");
    if (!message.is_object() || member(message, "jsonrpc") != "2.0")
      return error(id, kInvalidRequest, "not a JSON-RPC 2.0 message");
    if (!method.is_string()) return message.contains("id") ? Json() : error(id, kInvalidRequest, "no method");
    const auto name = method.get<std::string>();
    if (!message.contains("id")) {
      if (name == "notifications/cancelled") cancel(member(params, "requestId"));
      return {};
    }
    if (!id.is_string() && !id.is_number_integer())
      return error(Json(), kInvalidRequest, "an id is a text or a number");
    const Json version = member(member(params, "_meta"), kVersionKey);
    if (version.is_string() && version != kVersionWithoutHandshake &&
        std::find(kHandshakeVersions.begin(), kHandshakeVersions.end(), version.get<std::string>()) ==
            kHandshakeVersions.end())
      return error(id, kUnsupportedVersion, "this version is not spoken here",
                   {{"supported", all_versions()}, {"requested", version}});
    return answer(id, name, params);
  }

  static Json all_versions() {
    Json versions = Json::array({kVersionWithoutHandshake});
    for (const auto& version : kHandshakeVersions) versions.push_back(version);
    return versions;
  }

  Json answer(const Json& id, const std::string& name, const Json& params) {
    if (name == "ping") return result(id, Json::object());
    if (name == "initialize") return result(id, handshake(params));
    if (name == "server/discover")
      return result(id, {{"supportedVersions", all_versions()},
                         {"capabilities", {{"tools", Json::object()}}},
                         {"serverInfo", {{"name", "kernelseek"}, {"version", "0.1.0"}}},
                         {"instructions", kInstructions},
                         {"ttlMs", 0},
                         {"cacheScope", "private"}});
    if (name == "tools/list") return result(id, {{"tools", listed()}, {"ttlMs", 0}, {"cacheScope", "private"}});
    if (name == "tools/call") return start_call(id, params);
    return error(id, kNoMethod, "unknown method " + name);
  }

  static Json handshake(const Json& params) {
    const Json asked = member(params, "protocolVersion");
    const bool known = asked.is_string() && std::find(kHandshakeVersions.begin(), kHandshakeVersions.end(),
                                                      asked.get<std::string>()) != kHandshakeVersions.end();
    return {{"protocolVersion", known ? asked : Json(kHandshakeVersions.front())},
            {"capabilities", {{"tools", Json::object()}}},
            {"serverInfo", {{"name", "kernelseek"}, {"version", "0.1.0"}}},
            {"instructions", kInstructions}};
  }

  Json listed() const {
    Json list = Json::array();
    for (const auto& tool : tools_)
      list.push_back({{"name", tool.name},
                      {"title", tool.title},
                      {"description", tool.description},
                      {"inputSchema", tool.input_schema},
                      {"annotations", {{"title", tool.title}, {"readOnlyHint", true}, {"openWorldHint", false}}}});
    return list;
  }

  Json start_call(const Json& id, const Json& params) {
    const Json name = member(params, "name");
    const auto tool = std::find_if(tools_.begin(), tools_.end(), [&](const Tool& t) { return Json(t.name) == name; });
    if (tool == tools_.end()) return error(id, kBadParameters, "unknown tool " + name.dump());
    Json arguments = member(params, "arguments");
    if (arguments.is_null()) arguments = Json::object();
    if (const std::string wrong = what_is_wrong(*tool, arguments); !wrong.empty())
      return error(id, kBadParameters, wrong);
    sweep();
    auto call = std::make_unique<Call>();
    call->id = id;
    call->thread =
        std::thread([this, &call = *call, tool = *tool, arguments,
                     token = member(member(params, "_meta"), "progressToken")] { work(call, tool, arguments, token); });
    calls_.push_back(std::move(call));
    return {};
  }

  /// Names and types against the schema's; "" where all fits.
  static std::string what_is_wrong(const Tool& tool, const Json& arguments) {
    if (!arguments.is_object()) return "the arguments are no object";
    const Json& properties = tool.input_schema.at("properties");
    for (const auto& [key, value] : arguments.items()) {
      const auto found = properties.find(key);
      if (found == properties.end()) return fmt::format("{} has no argument \"{}\"", tool.name, key);
      const auto type = found->at("type").get<std::string>();
      const bool fits = type == "string"    ? value.is_string()
                        : type == "boolean" ? value.is_boolean()
                        : type == "array"   ? value.is_array()
                                            : value.is_number();
      if (!fits) return fmt::format("\"{}\" must be of type {}", key, type);
    }
    for (const Json& needed : tool.input_schema.at("required"))
      if (!arguments.contains(needed.get<std::string>()))
        return fmt::format("{} needs the argument {}", tool.name, needed.dump());
    return "";
  }

  void work(Call& call, const Tool& tool, const Json& arguments, const Json& token) {
    CallContext context;
    context.is_cancelled = &call.is_cancelled;
    double last = -1;
    context.progress = [&](double seconds, const std::string& message) {
      if (token.is_null() || call.is_cancelled || seconds <= last) return;
      last = seconds;  // it must rise
      send({{"jsonrpc", "2.0"},
            {"method", "notifications/progress"},
            {"params", {{"progressToken", token}, {"progress", seconds}, {"message", message}}}});
    };
    CallResult done;
    try {
      done = tool.run(arguments, context);
    } catch (const std::exception& e) {
      done = {e.what(), true, Json()};
    }
    if (!call.is_cancelled) {  // a cancelled call gets no reply
      Json body = {{"content", Json::array({{{"type", "text"}, {"text", done.text}}})}, {"isError", done.is_error}};
      if (!done.structured.is_null()) body["structuredContent"] = done.structured;
      send(result(call.id, std::move(body)));
    }
    call.is_done = true;
  }

  void cancel(const Json& id) {
    for (auto& call : calls_)
      if (call->id == id) call->is_cancelled = true;
  }

  /// Joins what has ended.
  void sweep() {
    std::erase_if(calls_, [](const auto& call) {
      if (!call->is_done) return false;
      call->thread.join();
      return true;
    });
  }

  void end_calls() {
    for (auto& call : calls_) call->is_cancelled = true;
    for (auto& call : calls_) call->thread.join();
    calls_.clear();
  }

  const std::vector<Tool>& tools_;
  int in_, out_;
  std::mutex out_mutex_;
  std::vector<std::unique_ptr<Call>> calls_;
};

}  // namespace

void serve(const std::vector<Tool>& tools, int in_fd, int out_fd) {
  Server(tools, in_fd, out_fd).run();
}

}  // namespace ks::mcp
