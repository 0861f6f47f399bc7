// What the trusted side does around every call: move inputs under a symmetry, hash them, compare outputs row by row.
// All three ought to run at the speed of memory; bytes per second are what the tensor holds.
#include <benchmark/benchmark.h>

#include <numeric>

#include "base/hash.h"
#include "operators/apply_symmetry.h"
#include "operators/output_rows.h"
#include "stats/intervals.h"

namespace ks {
namespace {

/// One output of 8 x 512 rows x 16 heads x 128 columns, bfloat16: 16 MiB.
op::Problem one_output() {
  op::Tensor tensor;
  tensor.name = "output";
  tensor.role = op::Role::kOutput;
  tensor.dtype = core::Dtype::kBf16;
  tensor.shape = {8, 512, 16, 128};
  tensor.strides = {512 * 16 * 128, 16 * 128, 128, 1};
  tensor.bytes = 2ull * 8 * 512 * 16 * 128;
  tensor.rule = op::OutputRule::kRelativeL2Row;
  tensor.limit = 0.01;
  op::Problem problem;
  problem.tensors.push_back(tensor);
  return problem;
}

/// Heads in another order, which is what most symmetries do.
op::Symmetry reversed_heads() {
  std::vector<int32_t> source(16);
  std::iota(source.rbegin(), source.rend(), 0);
  op::Symmetry symmetry;
  symmetry.axes.push_back({0, 2, source});
  return symmetry;
}

void MoveHeads(benchmark::State& state) {
  const op::Problem problem = one_output();
  const auto symmetry = reversed_heads();
  const std::vector<std::byte> from(problem.tensors[0].bytes);
  std::vector<std::byte> to(from.size());
  for (auto _ : state) op::transform_tensor(problem, 0, symmetry, from.data(), to.data());
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(from.size()));
}
BENCHMARK(MoveHeads)->Unit(benchmark::kMicrosecond);

void CompareRows(benchmark::State& state) {
  const op::Problem problem = one_output();
  const auto symmetry = reversed_heads();
  const std::vector<std::byte> got(problem.tensors[0].bytes);
  const op::Expected::Rows expected{.values = std::vector<float>(got.size() / 2)};
  for (auto _ : state) {
    const auto found = op::compare_rows(problem, 0, symmetry, expected, got.data());
    if (found.failures > 0 || found.rows != 8 * 512 * 16) state.SkipWithError("equal rows were found to differ");
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(got.size()));
}
BENCHMARK(CompareRows)->Unit(benchmark::kMicrosecond);

void HashInput(benchmark::State& state) {
  const std::vector<std::byte> bytes(16 << 20);
  for (auto _ : state) benchmark::DoNotOptimize(base::buffer_hash(bytes.data(), bytes.size(), 7));
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(bytes.size()));
}
BENCHMARK(HashInput)->Unit(benchmark::kMicrosecond);

void PairedInterval(benchmark::State& state) {
  std::vector<double> logs;
  for (int i = 0; i < 60; ++i) logs.push_back(1e-3 * ((i * 37) % 101) - 0.05);
  for (auto _ : state) benchmark::DoNotOptimize(stats::paired_interval(logs));
}
BENCHMARK(PairedInterval)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace ks
