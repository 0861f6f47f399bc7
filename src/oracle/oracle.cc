#include "oracle/oracle.h"

#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/hash.h"

namespace ks::oracle {
namespace {

constexpr double kHostFlops = 4e9;  // below this the host's float64 answer is as quick
constexpr int64_t kCheckedRows = 64;
constexpr double kBinary32Limit = 1e-4;  // stricter limits need more than a reference in binary32

uint64_t align_up(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

uint32_t poison_of(core::Dtype dtype) {
  return dtype == core::Dtype::kE4m3 ? device::kPoisonWordE4m3 : device::kPoisonWord;
}

/// Places buffers one after the other in an arena, a redzone before and after each.
class Packer {
 public:
  explicit Packer(std::vector<device::Span>& redzones) : redzones_(redzones) { add_redzone(kRedzoneBytes); }

  device::Span place(uint64_t bytes) {
    if (bytes == 0) return {0, end_, 0};
    device::Span span{0, end_, bytes};
    const uint64_t padded = align_up(bytes, 4);
    end_ += padded;
    add_redzone(align_up(end_, kAlignment) - end_ + kRedzoneBytes);
    return span;
  }
  uint64_t end() const { return align_up(end_, 4096); }

 private:
  void add_redzone(uint64_t bytes) {
    redzones_.push_back({0, end_, bytes});
    end_ += bytes;
  }
  std::vector<device::Span>& redzones_;
  uint64_t end_ = 0;
};

/// A span's words: the tail that does not fill a word belongs to the buffer's padding.
device::Span whole_words(device::Span span) {
  span.bytes = align_up(span.bytes, 4);
  return span;
}

bool is_written(const op::Tensor& tensor) {
  return tensor.role != op::Role::kInput;
}

Finding cheat(std::string reason) {
  return {false, "cheat", std::move(reason)};
}

}  // namespace

Oracle::Oracle(const std::string& operator_library, std::unique_ptr<device::Device> device, int threads)
    : device_(std::move(device)), threads_(threads), secret_(base::secret_seed()) {
  library_ = ::dlopen(operator_library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library_ == nullptr) throw Error("{}: cannot load this operator: {}", operator_library, ::dlerror());
  const auto version = reinterpret_cast<int (*)()>(::dlsym(library_, "ks_operator_interface_version"));
  const auto make = reinterpret_cast<op::Operator* (*)()>(::dlsym(library_, "ks_operator"));
  if (version == nullptr || make == nullptr)
    throw Error("{}: not an operator: it lacks KS_OPERATOR(...)", operator_library);
  if (version() != op::kOperatorInterfaceVersion)
    throw Error("{}: built against operator interface {}, this is {}; rebuild it", operator_library, version(),
                op::kOperatorInterfaceVersion);
  operator_.reset(make());
}

Oracle::~Oracle() {
  solved_.clear();
  sides_.clear();
  operator_.reset();
  if (library_ != nullptr) ::dlclose(library_);
}

const op::Problem& Oracle::set_problem(const core::Scenario& scenario) {
  while (!sides_.empty()) release(sides_.begin()->first);
  while (!solved_.empty()) forget(solved_.begin()->first);
  problem_ = operator_->problem(scenario);
  loose_problem_ = problem_;
  for (auto& tensor : loose_problem_->tensors)
    if (tensor.e4m3_limit > 0) tensor.limit = tensor.e4m3_limit;
  for (auto& tensor : problem_->tensors) tensor.e4m3_mean_limit = 0;  // a rule for those who round, and for them alone
  return *problem_;
}

void Oracle::solve(const std::string& slot, const std::string& recipe, uint64_t seed, bool nan_slack,
                   const op::Coverage& coverage) {
  KS_CHECK(problem_.has_value(), "a problem must be set before it is solved");
  forget(slot);
  Solved solved;
  for (const auto& tensor : problem_->tensors) solved.inputs.emplace_back(tensor.bytes);
  operator_->make_inputs(*problem_, recipe, seed, nan_slack, solved.inputs);
  uint64_t bytes = 0;
  for (const auto& tensor : problem_->tensors) {
    solved.base.push_back({0, bytes, tensor.bytes});
    bytes = align_up(bytes + tensor.bytes, kAlignment);
  }
  solved.base_arena = device_->allocate(std::max<uint64_t>(bytes, kAlignment), false);
  for (size_t t = 0; t < solved.base.size(); ++t) {
    solved.base[t].arena = solved.base_arena;
    if (problem_->tensors[t].role != op::Role::kOutput) device_->upload(solved.base[t], solved.inputs[t].data());
  }
  // Large problems on a device that can: all rows there, checked against float64 on some rows here.
  const bool strict = std::any_of(problem_->tensors.begin(), problem_->tensors.end(), [](const op::Tensor& tensor) {
    return tensor.rule == op::OutputRule::kRelativeL2Row && tensor.limit < kBinary32Limit;
  });
  const bool large = device_->kind() != "cpu" && problem_->flops > kHostFlops && !strict &&
                     coverage.kind == op::Coverage::Kind::kAllRows;
  const op::Coverage sampled{op::Coverage::Kind::kSampledRows, secret_, kCheckedRows};
  solved.expected = operator_->solve(*problem_, solved.inputs, large ? sampled : coverage, threads_);
  if (large) solved.on_device = device_->solve_here(*operator_, *problem_, solved.base, solved.expected);
  if (large && solved.on_device == nullptr)
    solved.expected = operator_->solve(*problem_, solved.inputs, coverage, threads_);
  if (solved.on_device == nullptr) solved.on_device = device_->keep(*problem_, solved.expected);
  solved_[slot] = std::move(solved);
}

void Oracle::forget(const std::string& slot) {
  const auto found = solved_.find(slot);
  if (found == solved_.end()) return;
  device_->release(found->second.base_arena);
  solved_.erase(found);
}

const SideBuffers& Oracle::lay_out(const std::string& name, int count, uint64_t scratch_bytes, uint64_t state_bytes,
                                   uint64_t schedule_bytes) {
  release(name);
  SideBuffers side;
  Packer inputs(side.input_redzones), outputs(side.output_redzones);
  // State belongs to a call in flight: one for all sets of a side, which run one after the other.
  const device::Span state = outputs.place(state_bytes);
  const device::Span scratch = outputs.place(scratch_bytes);
  for (int i = 0; i < count; ++i) {
    Set set;
    for (const auto& tensor : problem_->tensors)
      set.tensors.push_back(is_written(tensor) ? outputs.place(tensor.bytes) : inputs.place(tensor.bytes));
    set.scratch = scratch;
    set.state = state;
    set.schedule = outputs.place(schedule_bytes);
    side.sets.push_back(std::move(set));
  }
  side.input_bytes = inputs.end();
  side.output_bytes = outputs.end();
  side.input_arena = device_->allocate(side.input_bytes, false);
  try {
    side.output_arena = device_->allocate(side.output_bytes, true);
  } catch (...) {
    device_->release(side.input_arena);
    throw;
  }
  const auto settle = [&](device::Span& span, bool output) {
    span.arena = output ? side.output_arena : side.input_arena;
  };
  for (auto& zone : side.input_redzones) settle(zone, false);
  for (auto& zone : side.output_redzones) settle(zone, true);
  for (auto& set : side.sets) {
    for (size_t t = 0; t < set.tensors.size(); ++t) settle(set.tensors[t], is_written(problem_->tensors[t]));
    for (auto* span : {&set.scratch, &set.state, &set.schedule}) settle(*span, true);
  }
  side.redzone_word = static_cast<uint32_t>(base::mix64(secret_, base::buffer_hash(name.data(), name.size(), 1)));
  // Reads past an input meet NaN; writes past an output disturb a pattern that no worker knows beforehand.
  for (const auto& zone : side.input_redzones) device_->fill(zone, device::kPoisonWord);
  for (const auto& zone : side.output_redzones) device_->fill(zone, side.redzone_word);
  if (state_bytes > 0) device_->fill(whole_words(side.sets[0].state), 0);
  return sides_[name] = std::move(side);
}

void Oracle::release(const std::string& name) {
  const auto found = sides_.find(name);
  if (found == sides_.end()) return;
  device_->release(found->second.input_arena);
  device_->release(found->second.output_arena);
  sides_.erase(found);
}

void Oracle::fill_inputs(Set& set, const Solved& solved) {
  set.input_hash.assign(set.tensors.size(), 0);
  for (size_t t = 0; t < set.tensors.size(); ++t) {
    const op::Tensor& tensor = problem_->tensors[t];
    if (tensor.role == op::Role::kOutput) {
      if (counters_.poison_outputs) device_->fill(whole_words(set.tensors[t]), poison_of(tensor.dtype));
      continue;
    }
    device_->transform(*problem_, static_cast<int>(t), set.symmetry, solved.base[t], set.tensors[t]);
    if (tensor.role == op::Role::kInput) set.input_hash[t] = device_->hash(set.tensors[t], secret_);
  }
}

void Oracle::prepare(const std::string& name, const std::vector<int>& sets, const std::string& slot, uint64_t seed) {
  SideBuffers& side = sides_.at(name);
  const Solved& solved = solved_.at(slot);
  for (const int index : sets) {
    Set& set = side.sets.at(static_cast<size_t>(index));
    const bool alike = set.prepared && set.slot == slot && !counters_.fresh_inputs;
    set.symmetry = op::Symmetry{};
    if (seed != 0 && counters_.fresh_inputs)
      set.symmetry =
          operator_->draw_symmetry(*problem_, solved.inputs, base::mix64(secret_ ^ seed, static_cast<uint64_t>(index)));
    set.slot = slot;
    set.prepared = true;
    if (alike && !counters_.poison_outputs) continue;
    fill_inputs(set, solved);
  }
  if (counters_.poison_scratch && !side.sets.empty() && side.sets[0].scratch.bytes > 0)
    device_->fill(whole_words(side.sets[0].scratch), device::kPoisonWord);
}

Finding Oracle::check_fences(const SideBuffers& side) {
  if (counters_.check_redzones) {
    if (!device_->holds(side.output_redzones, side.redzone_word))
      return cheat("memory before or after a buffer was written (redzone)");
    if (!device_->holds(side.input_redzones, device::kPoisonWord))
      return cheat("memory before or after an input was written (redzone)");
  }
  const device::Span state = side.sets.empty() ? device::Span{} : side.sets[0].state;
  if (counters_.check_state && state.bytes > 0 && !device_->holds({whole_words(state)}, 0))
    return Finding{false, "wrong", "`state` was not left as it was found"};
  return {};
}

Finding Oracle::check_inputs(const Set& set) {
  for (size_t t = 0; t < set.tensors.size() && counters_.check_inputs; ++t)
    if (problem_->tensors[t].role == op::Role::kInput && device_->hash(set.tensors[t], secret_) != set.input_hash[t])
      return cheat(fmt::format("the input \"{}\" was changed", problem_->tensors[t].name));
  return {};
}

Finding Oracle::check_values(const op::Problem& problem, const Set& set, const std::vector<std::string>& skip) {
  const Solved& solved = solved_.at(set.slot);
  Finding worst;
  double nearest = -1;
  for (size_t t = 0; t < set.tensors.size(); ++t) {
    const op::Tensor& tensor = problem.tensors[t];
    if (!is_written(tensor) || std::find(skip.begin(), skip.end(), tensor.name) != skip.end()) continue;
    std::vector<std::byte> initial;
    if (tensor.role == op::Role::kInOut) {
      initial.resize(tensor.bytes);
      const int scratch_arena = device_->allocate(tensor.bytes, false);
      const device::Span copy{scratch_arena, 0, tensor.bytes};
      device_->transform(problem, static_cast<int>(t), set.symmetry, solved.base[t], copy);
      device_->download(copy, initial.data());
      device_->release(scratch_arena);
    }
    const auto report = device_->compare(problem, static_cast<int>(t), set.symmetry, *solved.on_device, set.tensors[t],
                                         initial.empty() ? nullptr : &initial);
    const double share = tensor.limit > 0 ? report.worst / tensor.limit : report.worst;
    if (report.failures > 0 || share > nearest) {
      if (tensor.rule == op::OutputRule::kRelativeL2Row || report.failures > 0) {
        nearest = share;
        worst.worst = report.worst;
        worst.mean = report.mean;
        worst.limit = tensor.limit;
      }
    }
    if (report.failures > 0) {
      worst.ok = false;
      worst.verdict = "wrong";
      worst.reason = fmt::format("{} of {} rows of \"{}\" are wrong; first: {}", report.failures, report.rows,
                                 tensor.name, report.where);
      return worst;
    }
    if (tensor.e4m3_mean_limit > 0 && !(report.mean <= tensor.e4m3_mean_limit)) {
      worst.ok = false;
      worst.verdict = "wrong";
      worst.reason = fmt::format("the rows of \"{}\" are off by {:.3g} in the mean, at most {:.3g}", tensor.name,
                                 report.mean, tensor.e4m3_mean_limit);
      return worst;
    }
  }
  return worst;
}

Finding Oracle::verify(const std::string& name, const std::vector<int>& sets, const std::vector<std::string>& skip,
                       bool loose) {
  const SideBuffers& side = sides_.at(name);
  const op::Problem& problem = loose ? *loose_problem_ : *problem_;
  Finding worst = check_fences(side);
  if (!worst.ok) return worst;
  for (const int index : sets) {
    const Set& set = side.sets.at(static_cast<size_t>(index));
    KS_CHECK(set.prepared, "a set is prepared before it is verified");
    Finding finding = check_inputs(set);
    if (finding.ok) finding = counters_.row_errors ? check_values(problem, set, skip) : check_loosely(set);
    if (!finding.ok) return finding;
    if (finding.worst >= worst.worst) worst = finding;
  }
  return worst;
}

Finding Oracle::check_loosely(const Set& set) {
  const Solved& solved = solved_.at(set.slot);
  KS_CHECK(set.symmetry.axes.empty() && set.symmetry.factors.empty(), "the loose rule is for inputs as they are");
  for (size_t t = 0; t < set.tensors.size(); ++t) {
    const op::Tensor& tensor = problem_->tensors[t];
    const auto& want = solved.expected.tensors[t].values;
    if (!is_written(tensor) || want.empty()) continue;
    std::vector<std::byte> got(tensor.bytes);
    device_->download(set.tensors[t], got.data());
    int64_t off = 0;
    for (size_t i = 0; i < want.size(); ++i) {
      const float value = core::load_element(got.data(), tensor.dtype, i);
      off += !(std::fabs(value - want[i]) <= 1e-2f + 1e-2f * std::fabs(want[i]) || value == want[i]);
    }
    if (static_cast<double>(off) > 0.01 * static_cast<double>(want.size()))
      return {false, "wrong", fmt::format("{} of {} elements of \"{}\" are off", off, want.size(), tensor.name)};
  }
  return {};
}

bool Oracle::same_outputs(const std::string& name, int first, int second) {
  const SideBuffers& side = sides_.at(name);
  for (size_t t = 0; t < problem_->tensors.size(); ++t) {
    if (problem_->tensors[t].role != op::Role::kOutput) continue;
    if (device_->hash(side.sets.at(static_cast<size_t>(first)).tensors[t], secret_) !=
        device_->hash(side.sets.at(static_cast<size_t>(second)).tensors[t], secret_))
      return false;
  }
  return true;
}

}  // namespace ks::oracle
