#include "worker/serve.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>

#include "sandbox/elf_file.h"
#include "sandbox/sandbox.h"
#include "worker/problem_calls.h"

namespace ks::worker {
namespace {

constexpr const char* kOrigin = "request";

/// Descriptors that came with a request; closed with it.
struct ReceivedFds {
  std::vector<int> fds;
  ~ReceivedFds() {
    for (const int fd : fds) ::close(fd);
  }
};

/// An answer, and descriptors that travel with it.
struct Answer {
  Json body = Json::object();
  std::vector<int> fds;
};

std::vector<std::byte> ipc_bytes(const std::string& hex) {
  std::vector<std::byte> bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes.push_back(static_cast<std::byte>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return bytes;
}

/// Private memory of a worker: more than any kernel needs (tensors and scratch are shared and do not count), and little
/// enough not to bring the machine down.
uint64_t default_memory_bytes() {
  constexpr uint64_t kMost = 4ull << 30;
  const long pages = ::sysconf(_SC_PHYS_PAGES), page = ::sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page <= 0) return kMost;
  return std::min(kMost, static_cast<uint64_t>(pages) * static_cast<uint64_t>(page) / 2);
}

class Worker {
 public:
  Answer answer(const Json& request, const std::vector<int>& fds) {
    const auto what = base::require<std::string>(request, "do", kOrigin);
    if (what == "confine") return confine(request);
    if (what == "load") return {load(request), {}};
    if (what == "seal") return {seal(), {}};
    if (what == "shape") return {shape(request), {}};
    if (what == "map") return {map(request, fds), {}};
    if (what == "sets") return {sets(request), {}};
    if (what == "lengths") return {lengths(request), {}};
    if (what == "run") return {run(request), {}};
    if (what == "unmap") return {unmap(), {}};
    throw Error("request: unknown \"do\": \"{}\"", what);
  }

 private:
  /// Before any foreign code is in the process.
  Answer confine(const Json& request) {
    if (library_) throw Error("confine comes before load");
    if (confined_) throw Error("already confined");
    open_device(request);
    Answer answer;
    const int witness = lock_in(request, base::value_or(request, "witness", false));
    answer.body["protections"] = protections_;
    if (witness >= 0) answer.fds.push_back(witness);
    answer.body["witness"] = witness >= 0;
    return answer;
  }

  void open_device(const Json& request) {
    if (device_) return;
    device_ = make_worker_device(base::require<std::string>(request, "device", kOrigin));
    device_->open(base::value_or(request, "ordinal", 0), base::value_or(request, "threads", 1));
  }

  /// Returns the witness's descriptor, -1 if there is none.
  int lock_in(const Json& request, bool want_witness) {
    confinement_.want_witness = want_witness;
    confinement_.device_files = device_->needs_device_files();
    confinement_.memory_bytes = base::value_or(request, "memory_bytes", default_memory_bytes());
    if (const auto path = base::value_or<std::string>(request, "library", ""); !path.empty()) {
      confinement_.read_paths = sandbox::library_folders(path);
      confinement_.read_paths.push_back(std::filesystem::path(path).parent_path().string());
    }
    const auto done = sandbox::confine(confinement_);
    protections_ = done.protections;
    confined_ = true;
    return done.witness_fd;
  }

  /// The candidate's constructors run here, confined already unless a test has switched that off.
  Json load(const Json& request) {
    if (library_) throw Error("this worker has loaded a library already");
    open_device(request);
    const auto path = base::require<std::string>(request, "library", kOrigin);
    if (!confined_ && base::value_or(request, "sandbox", true)) lock_in(request, false);
    try {
      library_ = load_library(path);
    } catch (const Error& e) {
      load_error_ = e.what();
      throw;
    }
    return {{"name", std::filesystem::path(path).filename().string()},
            {"source_hash", library_->source_hash},
            {"abi_version", library_->abi_version},
            {"has_plan_lengths", library_->plan_lengths != nullptr},
            {"protections", protections_},
            {"versions", Json::object()}};
  }

  Json seal() {
    require_library();
    if (!confined_) throw Error("this worker was loaded without its sandbox");
    const Json sealed = sandbox::seal(confinement_);
    for (const auto& [name, state] : sealed.items()) protections_[name] = state;
    return {{"protections", protections_}};
  }

  Json shape(const Json& request) {
    require_library();
    calls_.reset();
    calls_ = std::make_unique<ProblemCalls>(request, *library_);
    const auto& reply = calls_->reply();
    return {{"supported", reply.supported},
            {"reason", reply.reason},
            {"scratch_bytes", reply.sizes.scratch_bytes},
            {"state_bytes", reply.sizes.state_bytes},
            {"schedule_bytes", reply.sizes.schedule_bytes},
            {"plan_ns", reply.plan_ns}};
  }

  Json map(const Json& request, const std::vector<int>& fds) {
    std::vector<ArenaGrant> grants;
    size_t next = 0;
    for (const auto& arena : base::require<Json>(request, "arenas", kOrigin)) {
      ArenaGrant grant;
      grant.bytes = base::require<uint64_t>(arena, "bytes", kOrigin);
      grant.writable = base::require<bool>(arena, "writable", kOrigin);
      const auto ipc = ipc_bytes(base::value_or<std::string>(arena, "ipc", ""));
      grant.ipc.assign(reinterpret_cast<const char*>(ipc.data()), ipc.size());
      if (grant.ipc.empty() && next < fds.size()) grant.fd = fds[next++];
      grants.push_back(std::move(grant));
    }
    open_problem();
    calls_->forget_sets();
    device_->map(grants);
    return Json::object();
  }

  Json sets(const Json& request) {
    open_problem().use_sets(base::require<Json>(request, "sets", kOrigin), *device_);
    return Json::object();
  }

  Json lengths(const Json& request) {
    if (!library_ || library_->plan_lengths == nullptr) throw Error("the candidate has no ks_plan_lengths");
    const void* call = open_problem().call(base::require<int>(request, "set", kOrigin));
    const auto result = device_->run({{library_->plan_lengths}, {call}, false});
    if (result.status != KS_OK) throw Error("ks_plan_lengths answered {} {}", result.status, result.error);
    return {{"ns", result.end_ns - result.begin_ns}};
  }

  Json run(const Json& request) {
    require_library();
    Block block{functions_of(base::value_or<std::string>(request, "phase", "run")),
                {},
                base::value_or<std::string>(request, "mode", "eager") == "graph"};
    for (const int set : base::require<std::vector<int>>(request, "sets", kOrigin))
      block.calls.push_back(open_problem().call(set));
    const auto result = device_->run(block);
    Json answer = {{"begin_ns", result.begin_ns},
                   {"end_ns", result.end_ns},
                   {"event_ns", result.event_ns},
                   {"status", result.status}};
    if (!result.error.empty()) answer["detail"] = result.error;
    return answer;
  }

  /// "run", "plan" (lengths alone) or "both".
  std::vector<CallFunction> functions_of(const std::string& phase) const {
    if (phase == "run") return {library_->run};
    if (phase != "plan" && phase != "both") throw Error("request: unknown \"phase\": \"{}\"", phase);
    if (library_->plan_lengths == nullptr) throw Error("the candidate has no ks_plan_lengths");
    return phase == "plan" ? std::vector<CallFunction>{library_->plan_lengths}
                           : std::vector<CallFunction>{library_->plan_lengths, library_->run};
  }

  /// The shape stays until the next `shape`: the same problem may be mapped anew with other sets.
  Json unmap() {
    if (calls_) calls_->forget_sets();
    if (device_) device_->unmap();
    return Json::object();
  }

  ProblemCalls& open_problem() {
    if (!calls_) throw Error("shape comes first");
    return *calls_;
  }

  /// Whoever asks again after a failed load hears why it failed.
  void require_library() const {
    if (!library_) throw Error(load_error_.empty() ? "load comes first" : load_error_);
  }

  std::unique_ptr<WorkerDevice> device_;
  std::optional<NativeLibrary> library_;
  std::unique_ptr<ProblemCalls> calls_;
  sandbox::Confinement confinement_;
  Json protections_ = Json::object();
  bool confined_ = false;
  std::string load_error_;
};

}  // namespace

void serve_worker(base::Channel& channel) {
  Worker worker;
  while (auto message = channel.receive(-1)) {
    const ReceivedFds received{message->fds};
    if (base::value_or<std::string>(message->body, "do", "") == "quit") {
      channel.send({{"ok", true}});
      return;
    }
    Answer answer;
    try {
      answer = worker.answer(message->body, received.fds);
      answer.body["ok"] = true;
    } catch (const std::exception& e) {
      answer = {{{"ok", false}, {"error", e.what()}}, {}};
    }
    const bool sent = channel.send(answer.body, answer.fds);
    for (const int fd : answer.fds) ::close(fd);
    if (!sent) return;
  }
}

}  // namespace ks::worker
