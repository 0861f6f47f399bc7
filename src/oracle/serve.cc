// The oracle's side of its channel. Requests (key "do") and answers are JSON lines; see the table in serve_oracle.
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "oracle/oracle.h"
#ifdef KS_WITH_CUDA
#include "device/cuda/cuda_device.h"
#endif

namespace ks::oracle {
namespace {

std::string hex(const std::string& bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const char c : bytes) {
    text += kDigits[(static_cast<unsigned char>(c) >> 4) & 15];
    text += kDigits[static_cast<unsigned char>(c) & 15];
  }
  return text;
}

core::Scenario scenario_from(const Json& json) {
  core::Scenario scenario;
  scenario.id = json.at("id").get<int>();
  scenario.name = json.at("name").get<std::string>();
  scenario.category = json.at("category").get<std::string>();
  scenario.origin = json.at("origin").get<std::string>();
  for (const auto& [key, value] : json.at("values").items()) scenario.values[key] = value.get<std::string>();
  return scenario;
}

Json tensor_json(const op::Tensor& tensor) {
  Json slots = Json::array();
  for (const auto& slot : tensor.slots) slots.push_back({slot.call_offset, slot.byte_offset});
  return Json{{"name", tensor.name},
              {"role", tensor.role == op::Role::kInput    ? "input"
                       : tensor.role == op::Role::kOutput ? "output"
                                                          : "inout"},
              {"dtype", core::dtype_name(tensor.dtype)},
              {"shape", tensor.shape},
              {"strides", tensor.strides},
              {"bytes", tensor.bytes},
              {"limit", tensor.limit},
              {"slots", slots}};
}

Json problem_json(const op::Operator& the_operator, const op::Problem& problem) {
  Json tensors = Json::array(), recipes = Json::array();
  uint64_t set_bytes = 0;
  for (const auto& tensor : problem.tensors) {
    tensors.push_back(tensor_json(tensor));
    set_bytes += tensor.bytes;
  }
  for (const auto& recipe : the_operator.recipes(problem))
    recipes.push_back({{"name", recipe.name}, {"is_probe", recipe.is_probe}});
  return Json{{"ok", true},
              {"shape", hex(problem.shape_blob)},
              {"call", hex(problem.call_blob)},
              {"tensors", tensors},
              {"recipes", recipes},
              {"set_bytes", set_bytes},
              {"flops", problem.flops},
              {"bytes", problem.bytes},
              {"matrix_dtype", core::dtype_name(problem.matrix_dtype)},
              {"has_lengths", problem.has_lengths}};
}

Json place_json(const device::Span& span, const SideBuffers& side) {
  return Json::array({span.arena == side.output_arena ? 1 : 0, span.offset});
}

Json optional_place_json(const device::Span& span, const SideBuffers& side) {
  return span.bytes == 0 ? Json(nullptr) : place_json(span, side);
}

Json sets_json(const SideBuffers& side) {
  Json sets = Json::array();
  for (const auto& set : side.sets) {
    Json tensors = Json::array();
    for (const auto& span : set.tensors) tensors.push_back(place_json(span, side));
    sets.push_back({{"tensors", tensors},
                    {"scratch", optional_place_json(set.scratch, side)},
                    {"state", optional_place_json(set.state, side)},
                    {"schedule", optional_place_json(set.schedule, side)}});
  }
  return sets;
}

Json finding_json(const Finding& finding) {
  return Json{{"ok", true},
              {"correct", finding.ok},
              {"verdict", finding.verdict},
              {"reason", finding.reason},
              {"worst", finding.worst},
              {"mean", finding.mean},
              {"limit", finding.limit}};
}

void set_counters(Counters& counters, const Json& off) {
  const std::pair<const char*, bool*> known[] = {
      {"poison_outputs", &counters.poison_outputs}, {"poison_scratch", &counters.poison_scratch},
      {"check_redzones", &counters.check_redzones}, {"check_inputs", &counters.check_inputs},
      {"check_state", &counters.check_state},       {"fresh_inputs", &counters.fresh_inputs},
      {"row_errors", &counters.row_errors}};
  for (const auto& [name, flag] : known) *flag = true;
  for (const auto& entry : off)
    for (const auto& [name, flag] : known)
      if (entry.get<std::string>() == name) *flag = false;
}

op::Coverage coverage_from(const Json& request) {
  op::Coverage coverage;
  const auto rows = base::value_or<int64_t>(request, "sampled_rows", 0);
  if (rows > 0) coverage = {op::Coverage::Kind::kSampledRows, base::secret_seed(), rows};
  return coverage;
}

std::unique_ptr<device::Device> make_device(const std::string& kind, [[maybe_unused]] int ordinal, int threads) {
  if (kind == "cpu") return device::make_cpu_device(threads);
#ifdef KS_WITH_CUDA
  if (kind == "cuda") return device::make_cuda_device(ordinal);
#endif
  throw Error("this build has no device \"{}\"{}", kind,
              kind == "cuda" ? ": it was made without a CUDA compiler" : "; known: cpu, cuda");
}

/// What a request asks for, done. `shares` are descriptors to send along.
class Server {
 public:
  Json answer(const Json& request, std::vector<int>& shares) {
    const auto what = base::require<std::string>(request, "do", "oracle");
    if (what == "open") return open(request);
    if (!oracle_) throw Error("oracle: \"{}\" before \"open\"", what);
    if (what == "problem")
      return problem_json(oracle_->the_operator(), oracle_->set_problem(scenario_from(request["scenario"])));
    if (what == "solve") return solve(request);
    if (what == "layout") return layout(request, shares);
    if (what == "release") return oracle_->release(request["side"]), Json{{"ok", true}};
    if (what == "forget") return oracle_->forget(request["slot"]), Json{{"ok", true}};
    if (what == "prepare") return prepare(request);
    if (what == "verify") return verify(request);
    if (what == "same")
      return Json{{"ok", true}, {"same", oracle_->same_outputs(request["side"], request["first"], request["second"])}};
    throw Error("oracle: unknown request \"{}\"", what);
  }

 private:
  Json open(const Json& request) {
    const auto kind = request.value("device", "cpu");
    const int threads = request.value("threads", 1);
    oracle_ =
        std::make_unique<Oracle>(request["operator"], make_device(kind, request.value("ordinal", 0), threads), threads);
    if (request.contains("counters_off")) set_counters(oracle_->counters(), request["counters_off"]);
    return Json{{"ok", true},
                {"name", oracle_->the_operator().name()},
                {"device", oracle_->the_device().describe()},
                {"cold_bytes", oracle_->the_device().cold_bytes()}};
  }

  Json solve(const Json& request) {
    const int64_t start = base::monotonic_ns();
    oracle_->solve(request["slot"], request["recipe"], request["seed"], request.value("nan_slack", false),
                   coverage_from(request));
    return Json{{"ok", true}, {"seconds", static_cast<double>(base::monotonic_ns() - start) * 1e-9}};
  }

  Json layout(const Json& request, std::vector<int>& shares) {
    const auto& side = oracle_->lay_out(request["side"], request["count"], request["scratch_bytes"],
                                        request["state_bytes"], request["schedule_bytes"]);
    Json arenas = Json::array();
    for (const int arena : {side.input_arena, side.output_arena}) {
      const auto share = oracle_->the_device().share(arena);
      arenas.push_back({{"bytes", share.bytes}, {"writable", share.writable}});
      if (!share.ipc.empty()) arenas.back()["ipc"] = share.ipc;
      if (share.fd >= 0) shares.push_back(share.fd);
    }
    return Json{{"ok", true}, {"arenas", arenas}, {"sets", sets_json(side)}};
  }

  Json prepare(const Json& request) {
    oracle_->prepare(request["side"], request["sets"].get<std::vector<int>>(), request["slot"], request["seed"]);
    if (request.value("timed", false)) oracle_->the_device().settle();
    return Json{{"ok", true}};
  }

  /// Verifies several sets; the first that is not correct decides. After a timed block the device's state comes first.
  Json verify(const Json& request) {
    const Json state = request.value("timed", false) ? oracle_->the_device().state() : Json::object();
    Json answer = verify_sets(request);
    answer["state"] = state;
    return answer;
  }

  Json verify_sets(const Json& request) {
    return finding_json(oracle_->verify(request["side"], request["sets"].get<std::vector<int>>(),
                                        request.value("skip", std::vector<std::string>{}),
                                        request.value("loose", false)));
  }

  std::unique_ptr<Oracle> oracle_;
};

}  // namespace

// | do      | keys                                                            | answer | | open    | operator
// (library), device, threads, counters_off               | name, device, cold_bytes                | | problem |
// scenario                                                        | shape, call, tensors, recipes, counts   | | solve
// | slot, recipe, seed, nan_slack, sampled_rows                     | seconds                                 | |
// layout  | side, count, scratch_bytes, state_bytes, schedule_bytes         | arenas (+ descriptors), sets            |
// | prepare | side, sets, slot, seed (0: as they are)                         | | | verify  | side, sets, skip (outputs
// that the side lacks)                  | correct, verdict, reason, worst, mean   | | same    | side, first, second |
// same                                    | | release | side |                                         | | forget  |
// slot                                                            |                                         |
void serve_oracle(base::Channel& channel) {
  Server server;
  while (true) {
    const auto message = channel.receive(-1);
    if (!message) return;
    std::vector<int> shares;
    Json answer;
    try {
      answer = server.answer(message->body, shares);
    } catch (const std::bad_alloc&) {
      shares.clear();
      answer = Json{{"ok", false}, {"error", "out of memory: the host has too little for this scenario"}};
    } catch (const std::exception& e) {
      shares.clear();
      answer = Json{{"ok", false}, {"error", e.what()}};
    }
    if (!channel.send(answer, shares)) return;
  }
}

}  // namespace ks::oracle
