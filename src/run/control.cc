#include "run/control.h"

namespace ks::run {
namespace {
constexpr size_t kMostText = 64 * 1024;
}

std::string clean_words(const std::string& typed) {
  std::string text;
  for (char c : typed)
    if (c == '\n' || c == '\t' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f)) text += c;
  if (text.find_first_not_of(" \n\t") == std::string::npos) throw Error("\"text\" is empty");
  if (text.size() > kMostText) throw Error("\"text\" has {} bytes; at most {} are taken", text.size(), kMostText);
  return text;
}

Control::Control(const base::fs::path& socket) : socket_(socket), thread_([this] { serve(); }) {}

Control::~Control() {
  ending_ = true;
  thread_.join();
}

std::vector<std::string> Control::take_messages() {
  const std::lock_guard guard(mutex_);
  return std::exchange(messages_, {});
}

void Control::set_waiting(bool waiting) {
  waiting_ = waiting;
  if (!waiting) continued_ = false;
}

void Control::set_status(Json status) {
  const std::lock_guard guard(mutex_);
  status_ = std::move(status);
}

Json Control::answer(const Json& request) {
  const auto what = base::require<std::string>(request, "do", "control.sock");
  if (what == "pause")
    paused_ = true;
  else if (what == "resume")
    paused_ = false;
  else if (what == "stop")
    stopped_ = true;
  else if (what == "say") {
    std::string text = clean_words(base::value_or<std::string>(request, "text", ""));
    const std::lock_guard guard(mutex_);
    messages_.push_back(std::move(text));
  } else if (what == "continue") {
    if (!waiting_) throw Error("the run does not wait for a question");
    continued_ = true;
  } else if (what != "status") {
    throw Error("unknown \"do\": \"{}\"; known: status, pause, resume, stop, say, continue", what);
  }
  const std::lock_guard guard(mutex_);
  return {{"ok", true},
          {"paused", paused_.load()},
          {"stopped", stopped_.load()},
          {"waiting", waiting_.load()},
          {"status", status_}};
}

void Control::serve() {
  constexpr double kTurn = 0.05;
  while (!ending_) {
    auto request = socket_.next(kTurn);
    if (!request) continue;
    try {
      socket_.reply(request->connection, answer(request->body));
    } catch (const std::exception& e) {
      socket_.reply(request->connection, {{"ok", false}, {"error", e.what()}});
    }
  }
}

}  // namespace ks::run
