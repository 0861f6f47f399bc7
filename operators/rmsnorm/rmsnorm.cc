#include "operators/rmsnorm/rmsnorm.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>

#include "abi/rmsnorm.h"
#include "base/hash.h"
#include "operators/cells.h"
#include "operators/fill.h"
#include "operators/parallel.h"
#include "operators/permutation.h"

namespace ks::rmsnorm {
namespace {

using core::Dtype;

/// How a row of the input is made.
enum class Character { kPlain, kOutlierChannels, kConstant, kTiny, kHuge, kDominant, kOneHot, kZero };
constexpr int kMixed = 6;  ///< the first so many make up the mixture

struct RecipeRow {
  const char* name;
  bool is_probe;
  Character character;
};
// "mixture" gives every row one of the first kMixed characters, at random.
constexpr RecipeRow kRecipes[] = {
    {"mixture", false, Character::kPlain},      {"outlier_channels", false, Character::kOutlierChannels},
    {"constant", false, Character::kConstant},  {"tiny", false, Character::kTiny},
    {"huge", false, Character::kHuge},          {"dominant_column", false, Character::kDominant},
    {"one_hot_rows", true, Character::kOneHot}, {"zero_rows", true, Character::kZero}};

/// Relative L2 error of a row that is accepted. Accepted implementations round twice, before and after the weight: at
/// most 2 * 2^-8 in bfloat16 and 2 * 2^-11 in binary16, which a row reaches that one element dominates. binary32 leaves
/// room for any order of summation: one running sum of equal squares, the worst, was seen to be off by 7.4e-9 a column.
/// Elements rounded to 11 bits are off by 2e-4, which no width allows.
double row_limit(Dtype dtype, int64_t columns) {
  if (dtype == Dtype::kBf16) return 8e-3;
  return dtype == Dtype::kF16 ? 1e-3 : std::min(1.5e-4, 5e-6 + 8e-9 * static_cast<double>(columns));
}

const ks_rmsnorm_shape& shape_of(const op::Problem& problem) {
  return *reinterpret_cast<const ks_rmsnorm_shape*>(problem.shape_blob.data());
}

ks_rmsnorm_shape read_shape(const core::Scenario& scenario) {
  ks_rmsnorm_shape shape{};
  shape.header = {KS_ABI_VERSION, sizeof(shape)};
  Dtype dtype = Dtype::kF32;
  try {
    dtype = core::parse_dtype(op::cell(scenario, "dtype"));
  } catch (const Error& e) {
    op::cell_error(scenario, "dtype", e.what());
  }
  if (dtype == Dtype::kE4m3 || dtype == Dtype::kI32) op::cell_error(scenario, "dtype", "must be fp32, fp16 or bf16");
  shape.dtype = static_cast<int32_t>(dtype);
  shape.rows = op::parse_number(scenario, "rows", op::cell(scenario, "rows"), 1, int64_t{1} << 30);
  shape.columns =
      static_cast<int32_t>(op::parse_number(scenario, "columns", op::cell(scenario, "columns"), 1, 1 << 24));
  const int64_t gap = op::parse_number(scenario, "gap", op::cell(scenario, "gap"), 0, 1 << 20);
  shape.input_row_stride = shape.output_row_stride = shape.columns + gap;
  try {
    shape.epsilon = std::stof(op::cell(scenario, "epsilon"));
  } catch (const std::logic_error&) {
    op::cell_error(scenario, "epsilon", fmt::format("\"{}\" is not a number", op::cell(scenario, "epsilon")));
  }
  if (!(shape.epsilon > 0)) op::cell_error(scenario, "epsilon", "must be above 0");
  return shape;
}

op::Tensor matrix(const char* name, const ks_rmsnorm_shape& shape, int64_t stride, size_t slot) {
  op::Tensor tensor;
  tensor.name = name;
  tensor.dtype = static_cast<Dtype>(shape.dtype);
  tensor.shape = {shape.rows, shape.columns};
  tensor.strides = {stride, 1};
  tensor.bytes = static_cast<uint64_t>((shape.rows - 1) * stride + shape.columns) * core::dtype_bytes(tensor.dtype);
  tensor.slots = {{static_cast<uint32_t>(slot), 0}};
  return tensor;
}

/// The normal values of a row, shaped by its character.
void shape_row(Character character, uint64_t seed, Dtype dtype, std::vector<float>& row) {
  const auto scale_all = [&](float factor) {
    for (float& value : row) value *= factor;
  };
  const size_t picked = base::mix64(seed, 1) % row.size();
  switch (character) {
    case Character::kPlain:
      return;
    case Character::kOutlierChannels:
      for (size_t c = picked % 61; c < row.size(); c += 61) row[c] *= 64.0f;
      return;
    case Character::kConstant:
      for (float& value : row) value = 1.5f + 0.01f * value;
      return;
    case Character::kTiny:
      return scale_all(dtype == Dtype::kF16 ? 0x1.0p-8f : 0x1.0p-20f);
    case Character::kHuge:
      return scale_all(dtype == Dtype::kF16 ? 0x1.0p10f : 0x1.0p30f);
    case Character::kDominant:
      row[picked] = 512.0f;
      return;
    case Character::kOneHot:
      for (float& value : row) value = 0;
      row[picked] = 3.0f;
      return;
    case Character::kZero:
      return scale_all((base::mix64(seed, 2) & 1) != 0 ? 0.0f : 1.0f);
  }
}

const RecipeRow& find_recipe(const std::string& name) {
  for (const auto& recipe : kRecipes)
    if (name == recipe.name) return recipe;
  throw Error("rmsnorm has no recipe \"{}\"", name);
}

/// The answer for one row, in float64: the definition, read off the ABI's header.
void solve_row(const ks_rmsnorm_shape& shape, const std::byte* input, const std::vector<float>& weight, float* out) {
  const auto columns = static_cast<size_t>(shape.columns);
  std::vector<float> x(columns);
  core::to_floats(input, static_cast<Dtype>(shape.dtype), columns, x.data());
  double squares = 0;
  for (const float value : x) squares += static_cast<double>(value) * static_cast<double>(value);
  const double norm = std::sqrt(squares / static_cast<double>(columns) + static_cast<double>(shape.epsilon));
  for (size_t c = 0; c < columns; ++c)
    out[c] = static_cast<float>(static_cast<double>(x[c]) / norm * static_cast<double>(weight[c]));
}

}  // namespace

std::vector<op::ColumnDoc> RmsNorm::columns() const {
  return {{"dtype", "of input, weight and output: fp32, fp16 or bf16"},
          {"rows", "rows of the matrix"},
          {"columns", "elements a row"},
          {"gap", "elements between the end of a row and the next"},
          {"epsilon", "added to the mean of squares"},
          {"note", "for people"}};
}

op::Problem RmsNorm::problem(const core::Scenario& scenario) const {
  const ks_rmsnorm_shape shape = read_shape(scenario);
  op::Problem problem;
  problem.scenario = scenario;
  problem.shape_blob.assign(reinterpret_cast<const char*>(&shape), sizeof(shape));
  ks_rmsnorm_call call{};
  call.context.abi_version = KS_ABI_VERSION;
  call.context.struct_bytes = sizeof(call);
  problem.call_blob.assign(reinterpret_cast<const char*>(&call), sizeof(call));

  const auto dtype = static_cast<Dtype>(shape.dtype);
  op::Tensor weight;
  weight.name = "weight";
  weight.dtype = dtype;
  weight.shape = {shape.columns};
  weight.strides = {1};
  weight.bytes = static_cast<uint64_t>(shape.columns) * core::dtype_bytes(dtype);
  weight.slots = {{offsetof(ks_rmsnorm_call, weight), 0}};
  op::Tensor output = matrix("output", shape, shape.output_row_stride, offsetof(ks_rmsnorm_call, output));
  output.role = op::Role::kOutput;
  output.rule = op::OutputRule::kRelativeL2Row;
  output.limit = row_limit(dtype, shape.columns);
  problem.tensors = {matrix("input", shape, shape.input_row_stride, offsetof(ks_rmsnorm_call, input)), weight, output};

  const double elements = static_cast<double>(shape.rows) * shape.columns;
  problem.flops = 4 * elements;  // square and add, then two products
  problem.bytes = (2 * elements + shape.columns) * static_cast<double>(core::dtype_bytes(dtype));
  problem.matrix_dtype = dtype;
  return problem;
}

std::vector<op::Recipe> RmsNorm::recipes(const op::Problem&) const {
  std::vector<op::Recipe> recipes;
  for (const auto& recipe : kRecipes) recipes.push_back({recipe.name, recipe.is_probe});
  return recipes;
}

void RmsNorm::make_inputs(const op::Problem& problem, const std::string& recipe, uint64_t seed, bool nan_slack,
                          op::Buffers& buffers) const {
  const ks_rmsnorm_shape& shape = shape_of(problem);
  const auto dtype = static_cast<Dtype>(shape.dtype);
  const size_t element = core::dtype_bytes(dtype);
  const auto columns = static_cast<size_t>(shape.columns);
  const RecipeRow& chosen = find_recipe(recipe);
  // The gaps first, then the rows over them.
  op::fill_garbage(base::mix64(seed, 1), dtype, buffers[kInput].size() / element, nan_slack, buffers[kInput].data());
  op::parallel_ranges(shape.rows, op::default_threads(), [&](int64_t begin, int64_t end) {
    std::vector<float> row(columns);
    for (int64_t r = begin; r < end; ++r) {
      const uint64_t row_seed = base::mix64(seed ^ 0x726F77, static_cast<uint64_t>(r));
      Character character = chosen.character;
      if (recipe == "mixture") character = static_cast<Character>(row_seed % kMixed);
      op::fill_normal(row_seed, columns, row.data());
      shape_row(character, row_seed, dtype, row);
      op::store_row(row.data(), dtype, columns,
                    buffers[kInput].data() + static_cast<size_t>(r * shape.input_row_stride) * element);
    }
  });
  std::vector<float> weight(columns);
  op::fill_normal(base::mix64(seed, 2), columns, weight.data());
  for (float& value : weight) value = 1.0f + 0.25f * value;
  op::store_row(weight.data(), dtype, columns, buffers[kWeight].data());
}

op::Expected RmsNorm::solve(const op::Problem& problem, const op::Buffers& buffers, const op::Coverage& coverage,
                            int threads) const {
  const ks_rmsnorm_shape& shape = shape_of(problem);
  const auto dtype = static_cast<Dtype>(shape.dtype);
  const auto columns = static_cast<size_t>(shape.columns);
  std::vector<float> weight(columns);
  core::to_floats(buffers[kWeight].data(), dtype, columns, weight.data());
  op::Expected expected;
  expected.tensors.resize(problem.tensors.size());
  auto& rows = expected.tensors[kOutput];
  rows.values.resize(static_cast<size_t>(shape.rows) * columns);
  const bool sampled = coverage.kind == op::Coverage::Kind::kSampledRows && coverage.sampled_rows < shape.rows;
  if (sampled) {
    rows.known.assign(static_cast<size_t>(shape.rows), 0);
    rows.known.front() = rows.known.back() = 1;
    base::Random random(coverage.seed);
    for (int64_t i = 0; i < coverage.sampled_rows; ++i) rows.known[random.below(static_cast<uint64_t>(shape.rows))] = 1;
  }
  op::parallel_ranges(shape.rows, threads, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      if (sampled && rows.known[static_cast<size_t>(r)] == 0) continue;
      solve_row(shape,
                buffers[kInput].data() + static_cast<size_t>(r * shape.input_row_stride) * core::dtype_bytes(dtype),
                weight, rows.values.data() + static_cast<size_t>(r) * columns);
    }
  });
  return expected;
}

op::Symmetry RmsNorm::draw_symmetry(const op::Problem& problem, const op::Buffers&, uint64_t seed) const {
  const ks_rmsnorm_shape& shape = shape_of(problem);
  base::Random random(seed);
  const auto rows = op::random_permutation(static_cast<size_t>(shape.rows), random);
  const auto columns = op::random_permutation(static_cast<size_t>(shape.columns), random);
  // The sum of squares does not see signs; a power of two on a weight scales that column of the answer exactly. The
  // products below are what reaches the output.
  const auto input_sign = op::random_signs(columns.size(), random);
  auto weight_factor = op::random_signs(columns.size(), random);
  const bool is_f16 = shape.dtype == KS_F16;
  op::scale_by_powers_of_two(weight_factor, is_f16 ? 0 : -2, 2, random);
  std::vector<float> output_factor(columns.size());
  for (size_t c = 0; c < columns.size(); ++c) output_factor[c] = input_sign[c] * weight_factor[c];
  op::Symmetry symmetry;
  symmetry.axes = {
      {kInput, 0, rows}, {kOutput, 0, rows}, {kInput, 1, columns}, {kWeight, 0, columns}, {kOutput, 1, columns}};
  symmetry.factors = {{kInput, input_sign}, {kWeight, weight_factor}, {kOutput, output_factor}};
  return symmetry;
}

}  // namespace ks::rmsnorm

KS_OPERATOR(ks::rmsnorm::RmsNorm)
