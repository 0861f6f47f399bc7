#include "serve/live_run.h"

#include <unistd.h>

#include "agents/request_socket.h"
#include "base/subprocess.h"
#include "report/write_report.h"
#include "trace/importer.h"

namespace ks::serve {
namespace {

namespace fs = base::fs;
constexpr double kPollS = 0.25, kAnswerS = 5;

std::string name_of(const fs::path& run) {
  const fs::path full = fs::absolute(run).lexically_normal();
  return full.has_filename() ? full.filename().string() : full.parent_path().filename().string();
}

/// "7 evaluations, best 0.412x, 1.5 min used" from what the run says of itself.
std::string progress_text(const Json& state) {
  if (!state.is_object() || !state.contains("evaluations")) return "";
  std::string text = fmt::format("{} evaluations", trace::integer_at(state, "evaluations"));
  if (const double best = trace::number_at(state, "best"); best > 0) text += fmt::format(", best {:.3g}x", best);
  if (const double used_s = trace::number_at(state, "seconds_used"); used_s > 0)
    text += fmt::format(", {:.1f} min used", used_s / 60);
  return text;
}

const fs::path& checked(const fs::path& run) {
  if (!fs::exists(run / "trace.jsonl"))
    throw Error("{}: holds no trace.jsonl; give the folder of a run (kernelseek run TASK.toml makes one)",
                run.string());
  return run;
}

}  // namespace

LiveRun::LiveRun(const base::fs::path& run, Suggest suggest)
    : run_(checked(run)), suggest_(std::move(suggest)), reader_(run / "trace.jsonl"), data_(name_of(run)) {
  read_new_events();
  publish();
  thread_ = std::thread([this] { follow(); });
}

LiveRun::~LiveRun() {
  close();
  thread_.join();
}

void LiveRun::close() {
  const std::lock_guard guard(mutex_);
  closing_ = true;
  changed_.notify_all();
}

bool LiveRun::read_new_events() {
  bool any = false;
  while (auto event = reader_.next()) {
    any = true;
    std::optional<core::Evaluation> record;
    if (const std::string file = event->kind == "evaluation" ? trace::text_at(event->body, "record") : "";
        !file.empty() && fs::exists(run_ / file)) {
      try {
        record = core::read_evaluation(run_ / file);
      } catch (const Error&) {
        // The page then shows what the event says; `report` names the fault.
      }
    }
    const std::lock_guard guard(mutex_);
    data_.on_event(*event);
    if (record) data_.on_evaluation(static_cast<int>(trace::integer_at(event->body, "number")), *record);
  }
  return any;
}

std::string LiveRun::read_status() {
  Json status = {{"running", false}, {"paused", false}, {"suggestions", suggestions_}};
  try {
    const Json answer = ask_run({{"do", "status"}});
    status["running"] = true;
    status["paused"] = base::value_or<bool>(answer, "paused", false);
    status["waiting"] = base::value_or<bool>(answer, "waiting", false);
    status["progress"] = progress_text(trace::value_at(answer, "status"));
  } catch (const Error&) {
    // Nobody listens: the run has ended, or has not begun.
  }
  return base::to_line(status);
}

void LiveRun::publish() {
  if (suggest_) {
    try {
      suggestions_ = suggest_(run_);
    } catch (const Error&) {
      suggestions_ = Json::array();
    }
  }
  const std::string status = read_status();
  const std::lock_guard guard(mutex_);
  page_ = std::make_shared<const std::string>(base::to_line(data_.json()));
  status_ = status;
  ++version_;
  changed_.notify_all();
}

void LiveRun::follow() {
  for (int turn = 0;; ++turn) {
    {
      std::unique_lock guard(mutex_);
      changed_.wait_for(guard, std::chrono::duration<double>(kPollS), [this] { return closing_; });
      if (closing_) return;
    }
    if (read_new_events()) {
      publish();
      continue;
    }
    if (turn % 4 != 0) continue;
    const std::string status = read_status();
    const std::lock_guard guard(mutex_);
    if (status == status_) continue;
    status_ = status;
    ++version_;
    changed_.notify_all();
  }
}

LiveRun::View LiveRun::wait(int64_t seen, double timeout_s) {
  std::unique_lock guard(mutex_);
  changed_.wait_for(guard, std::chrono::duration<double>(timeout_s), [&] { return closing_ || version_ > seen; });
  return {version_, page_, status_};
}

std::string LiveRun::html(const std::string& token) {
  const std::lock_guard guard(mutex_);
  return report::page_html(data_, {.is_live = true, .token = token});
}

Json LiveRun::ask_run(const Json& request) const {
  base::Channel channel(agents::connect_socket(run_ / "control.sock"));
  if (!channel.send(request)) throw Error("the run does not listen");
  const auto answer = channel.receive(kAnswerS);
  if (!answer) throw Error("the run did not answer within {} s", kAnswerS);
  if (!base::value_or<bool>(answer->body, "ok", false))
    throw Error("{}", base::value_or<std::string>(answer->body, "error", "the run refused"));
  return answer->body;
}

}  // namespace ks::serve
