#include "evaluator/worker_client.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "base/clock.h"
#include "base/file.h"

namespace ks::evaluator {
namespace {

constexpr double kLoadLimitS = 120;       // a Python worker imports its library
constexpr double kShapeLimitS = 60;       // ks_sizes and ks_plan; libraries that compile at first use say so here
constexpr double kBracketSlackUs = 3000;  // first launch of a graph, IPC, waking up
constexpr double kQuickLimitS = 30;       // map, sets, unmap

/// True once every thread of the process is stopped or gone.
bool is_stopped(pid_t pid) {
  std::ifstream status(fmt::format("/proc/{}/stat", pid));
  std::string text;
  if (!std::getline(status, text)) return true;
  const size_t end = text.rfind(')');
  return end == std::string::npos || end + 2 >= text.size() ||
         std::string("TtZX").find(text[end + 2]) != std::string::npos;
}

/// An answer's keys have the types that the protocol says: a worker is not trusted to keep to it.
bool is_well_formed(const Json& answer) {
  if (!answer.is_object() || !answer.contains("ok") || !answer["ok"].is_boolean()) return false;
  for (const auto& [key, value] : answer.items()) {
    const bool is_number = key == "status" || key.ends_with("_ns") || key == "ns" || key == "abi_version";
    if (is_number && !value.is_number()) return false;
    if (key.ends_with("_bytes") && !value.is_number_unsigned()) return false;
    if ((key == "supported" || key == "has_plan_lengths") && !value.is_boolean()) return false;
    if ((key == "reason" || key == "detail" || key == "error" || key == "error_class") && !value.is_string())
      return false;
    if ((key == "protections" || key == "versions") && !value.is_object()) return false;
    if (key != "unwritten") continue;
    if (!value.is_array()) return false;
    for (const auto& name : value)
      if (!name.is_string()) return false;
  }
  return true;
}

}  // namespace

WorkerClient::WorkerClient(Implementation implementation, std::string device, int threads, bool sandboxed, bool freezes)
    : implementation_(std::move(implementation)),
      device_(std::move(device)),
      threads_(threads),
      sandboxed_(sandboxed),
      freezes_(freezes) {}

WorkerClient::~WorkerClient() {
  stop();
}

void WorkerClient::stop() {
  thaw();
  child_.reset();
  frozen_ = loading_ = false;
}

void WorkerClient::freeze() {
  if (child_ == nullptr || frozen_) return;
  if (!freezes_) {
    ::usleep(100'000);
    return;
  }
  ::kill(child_->pid(), SIGSTOP);
  const int64_t start = base::monotonic_ns();
  while (!is_stopped(child_->pid()) && base::monotonic_ns() - start < 100'000'000) {
  }
  frozen_ = true;
}

void WorkerClient::thaw() {
  if (child_ == nullptr || !frozen_) return;
  ::kill(child_->pid(), SIGCONT);
  frozen_ = false;
}

Failure WorkerClient::dead(const std::string& doing) {
  thaw();
  // Its end may be on its way: give the exit status a moment before we make one.
  for (int i = 0; i < 50 && child_->alive(); ++i) ::usleep(2000);
  const int status = child_->kill();
  child_.reset();
  const std::string call = witness_ ? witness_->violation() : "";
  witness_.reset();
  if (!call.empty())
    return {core::Verdict::kCheat, fmt::format("the system call {}, which the sandbox forbids, while {}", call, doing)};
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS)
    return {core::Verdict::kCheat, fmt::format("a system call that the sandbox forbids, while {}", doing)};
  return {core::Verdict::kCrash, fmt::format("{} while {}", base::describe_exit(status), doing)};
}

std::optional<Failure> WorkerClient::ask(const Json& request, double limit_s, Json& answer,
                                         const std::vector<int>& fds) {
  const auto doing = request["do"].get<std::string>();
  thaw();
  if (!child_->channel().send(request, fds)) return dead(doing);
  return take_answer(doing, limit_s, answer);
}

std::optional<Failure> WorkerClient::take_answer(const std::string& doing, double limit_s, Json& answer,
                                                 std::vector<int>* fds) {
  std::optional<base::ChannelMessage> message;
  try {
    message = child_->channel().receive(limit_s);
  } catch (const Error& e) {
    child_.reset();
    return Failure{core::Verdict::kCrash,
                   fmt::format("the worker wrote something else than an answer while {}", doing)};
  }
  if (!message && child_->channel().closed()) return dead(doing);
  if (!message) {
    child_.reset();
    return Failure{core::Verdict::kTimeout, fmt::format("no answer within {:.0f} s while {}", limit_s, doing)};
  }
  if (fds != nullptr) *fds = message->fds;
  for (const int fd : message->fds)
    if (fds == nullptr) ::close(fd);
  answer = std::move(message->body);
  if (!is_well_formed(answer)) {
    child_.reset();
    return Failure{core::Verdict::kCrash, fmt::format("a malformed answer while {}", doing)};
  }
  if (!answer["ok"].get<bool>()) {
    const std::string why =
        answer.contains("error") && answer["error"].is_string() ? answer["error"].get<std::string>() : "?";
    // An error of a GPU stays with the process that made it: the next request gets a fresh one.
    if (device_ == "cuda" && (doing == "run" || doing == "lengths" || doing == "map")) child_.reset();
    return Failure{core::Verdict::kCrash, why};
  }
  return std::nullopt;
}

void WorkerClient::begin_start() {
  if (child_ != nullptr) return;
  base::SpawnOptions options;
  options.argv = implementation_.command;
  options.folder = implementation_.folder;
  options.env = implementation_.env;
  if (options.argv.empty()) options.argv = {(base::executable_folder() / "kernelseek-worker").string()};
  // Same threads for everyone, and none that spin between calls.
  for (const char* name : {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"})
    options.env.emplace_back(name, std::to_string(threads_));
  options.env.emplace_back("OMP_WAIT_POLICY", "passive");
  options.env.emplace_back("KERNELSEEK_SEAL_LIBRARY",
                           (base::executable_folder().parent_path() / "lib/libks_seal.so").string());
  witness_.reset();
  child_ = std::make_unique<base::Child>(options);
  frozen_ = false;
  Json load = {{"do", "load"}, {"device", device_}, {"ordinal", 0}, {"threads", threads_}, {"sandbox", sandboxed_}};
  if (!implementation_.shared_object.empty()) load["library"] = implementation_.shared_object;
  if (has_witness()) {
    Json confine = load;
    confine["do"] = "confine";
    confine["witness"] = true;
    child_->channel().send(confine);
  }
  child_->channel().send(load);  // one that is gone already is found out by whoever waits for the answer
  loading_ = true;
}

std::optional<Failure> WorkerClient::take_confinement() {
  Json answer;
  std::vector<int> fds;
  if (auto failure = take_answer("confine", kLoadLimitS, answer, &fds)) return failure;
  // Where the kernel has none to give, forbidden calls kill at once, and no name is known.
  for (size_t i = 1; i < fds.size(); ++i) ::close(fds[i]);
  if (!fds.empty()) witness_ = std::make_unique<sandbox::Witness>(fds[0], child_->pid());
  return std::nullopt;
}

std::optional<Failure> WorkerClient::start() {
  if (child_ != nullptr && !loading_) return std::nullopt;
  begin_start();
  loading_ = false;
  Json answer;
  if (has_witness())
    if (auto failure = take_confinement()) return failure;
  if (auto failure = take_answer("load", kLoadLimitS, answer)) return failure;
  has_plan_lengths_ = answer.value("has_plan_lengths", false);
  versions_ = answer.value("versions", Json::object());
  if (!sandboxed_) return std::nullopt;
  if (auto failure = ask({{"do", "seal"}}, kQuickLimitS, answer)) return failure;
  protections_ = answer.value("protections", Json::object());
  return std::nullopt;
}

std::optional<Failure> WorkerClient::shape(const core::Scenario& scenario, const ProblemInfo& problem,
                                           ShapeAnswer& result) {
  if (auto failure = start()) return failure;
  Json request = problem.json;
  request["do"] = "shape";
  request["scenario"] = scenario.values;
  request["scenario"]["name"] = scenario.name;
  request["scenario"]["category"] = scenario.category;
  Json answer;
  if (auto failure = ask(request, kShapeLimitS, answer)) return failure;
  result.supported = answer.value("supported", false);
  result.reason = answer.value("reason", "");
  result.scratch_bytes = answer.value("scratch_bytes", uint64_t{0});
  result.state_bytes = answer.value("state_bytes", uint64_t{0});
  result.schedule_bytes = answer.value("schedule_bytes", uint64_t{0});
  result.plan_us = answer.value("plan_ns", 0.0) * 1e-3;
  result.unwritten = implementation_.unwritten;
  result.rounds_to_e4m3 = !implementation_.is_candidate && answer.value("error_class", "") == "e4m3";
  if (!implementation_.is_candidate && answer.contains("unwritten"))
    result.unwritten = answer["unwritten"].get<std::vector<std::string>>();
  return std::nullopt;
}

std::optional<Failure> WorkerClient::map(Layout& layout) {
  Json answer;
  if (auto failure = ask({{"do", "map"}, {"arenas", layout.arenas}}, kQuickLimitS, answer, layout.fds)) return failure;
  return ask({{"do", "sets"}, {"sets", layout.sets}}, kQuickLimitS, answer);
}

std::optional<Failure> WorkerClient::plan_lengths(int set, double& elapsed_us) {
  Json answer;
  const int64_t start = base::monotonic_ns();
  if (auto failure = ask({{"do", "lengths"}, {"set", set}}, kShapeLimitS, answer)) return failure;
  elapsed_us = static_cast<double>(base::monotonic_ns() - start) * 1e-3;
  freeze();
  return std::nullopt;
}

std::optional<Failure> WorkerClient::run(const std::vector<int>& sets, double limit_s, double& elapsed_us,
                                         bool is_sample, bool eager, const std::string& phase) {
  Json answer;
  const bool on_gpu = device_ == "cuda" && !eager;
  const Json request = {{"do", "run"}, {"sets", sets}, {"mode", on_gpu ? "graph" : "eager"}, {"phase", phase}};
  const int64_t start = base::monotonic_ns();
  const auto failure = ask(request, limit_s, answer);
  elapsed_us = static_cast<double>(base::monotonic_ns() - start) * 1e-3;
  if (failure) return failure;
  // From here nothing of the worker runs until what it left is verified and fresh inputs lie ready.
  freeze();
  if (const int status = answer.value("status", -1); status != 0)
    return Failure{core::Verdict::kCrash, fmt::format("ks_run answered {} {}", status, answer.value("detail", ""))};
  return on_gpu && !sets.empty() ? take_event_time(answer, is_sample, elapsed_us) : std::nullopt;
}

std::optional<Failure> WorkerClient::take_event_time(const Json& answer, bool is_sample, double& elapsed_us) {
  // The device's own timer is the finer figure; it lies within our bracket and may fall short of it only by the cost of
  // asking, launching and waiting.
  const double event_us = answer.value("event_ns", 0.0) * 1e-3;
  if (!is_sample && event_us > 0 && event_us <= elapsed_us) {
    elapsed_us = event_us;
    return std::nullopt;
  }
  if (event_us <= 0 || event_us > elapsed_us || elapsed_us - event_us > kBracketSlackUs + 0.1 * elapsed_us)
    return Failure{core::Verdict::kSuspect,
                   fmt::format("the device's timer says {:.1f} us, our clock {:.1f} us", event_us, elapsed_us)};
  elapsed_us = event_us;
  return std::nullopt;
}

std::optional<Failure> WorkerClient::unmap() {
  if (child_ == nullptr) return std::nullopt;
  Json answer;
  return ask({{"do", "unmap"}}, kQuickLimitS, answer);
}

}  // namespace ks::evaluator
