#include "operators/attention_fwd/inputs.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/hash.h"
#include "operators/attention_fwd/character.h"
#include "operators/attention_fwd/lengths.h"
#include "operators/attention_fwd/rotary.h"
#include "operators/fill.h"
#include "operators/parallel.h"
#include "operators/permutation.h"

namespace ks::attention_fwd {
namespace {

using core::Dtype;

struct RecipeRow {
  const char* name;
  bool is_probe;
  Character character;
};
constexpr RecipeRow kRecipes[] = {{"mixture", false, Character::kPlain},
                                  {"outlier_channels", false, Character::kOutlierChannels},
                                  {"constant", false, Character::kConstant},
                                  {"tiny", false, Character::kTiny},
                                  {"huge", false, Character::kHuge},
                                  {"dominant_key", false, Character::kDominant},
                                  {"one_hot_blocks", false, Character::kOneHotBlocks},
                                  {"constant_values", true, Character::kConstantValues},
                                  {"permuted_keys", true, Character::kPlain},
                                  {"masked_garbage", true, Character::kPlain}};

/// Recipes whose heads each have a character of their own.
bool is_mixed(const std::string& recipe) {
  return recipe == "mixture" || recipe == "permuted_keys" || recipe == "masked_garbage";
}

const RecipeRow& find_recipe(const std::string& name) {
  for (const auto& recipe : kRecipes)
    if (name == recipe.name) return recipe;
  throw Error("attention_fwd has no recipe \"{}\"", name);
}

void put_integers(const std::vector<int32_t>& values, std::vector<std::byte>& buffer) {
  KS_CHECK(buffer.size() == values.size() * sizeof(int32_t), "lengths fill their tensor");
  std::memcpy(buffer.data(), values.data(), buffer.size());
}

std::vector<int32_t> cumulative(const std::vector<int32_t>& lengths) {
  std::vector<int32_t> sums = {0};
  for (const int32_t length : lengths) sums.push_back(sums.back() + length);
  return sums;
}

/// Pages in a random order, no two members sharing one. Entries past a member's pages name a page that nobody owns.
std::vector<int32_t> draw_page_table(const Spec& spec, const ks_attention_fwd_shape& shape, uint64_t seed) {
  base::Random random(base::mix64(seed, 0x7061));
  const auto order = op::random_permutation(static_cast<size_t>(shape.page_count), random);
  std::vector<int32_t> table(static_cast<size_t>(shape.batch) * static_cast<size_t>(shape.page_table_stride),
                             order.back());
  size_t next = 0;
  for (size_t b = 0; b < spec.keys.size(); ++b)
    for (int64_t p = 0; p < pages_of(spec.keys[b], spec.page_size); ++p)
      table[b * static_cast<size_t>(shape.page_table_stride) + static_cast<size_t>(p)] = order[next++];
  return table;
}

void put_lengths(const op::Problem& problem, const Spec& spec, uint64_t seed, op::Buffers& buffers) {
  const TensorIndex index = index_tensors(problem);
  const auto put = [&](int tensor, const std::vector<int32_t>& values) {
    if (tensor >= 0) put_integers(values, buffers[static_cast<size_t>(tensor)]);
  };
  put(index.cu_rows, cumulative(spec.rows));
  put(index.cu_keys, cumulative(spec.keys));
  std::vector<int32_t> before = spec.keys;
  for (int32_t& length : before) length -= spec.new_keys();
  put(index.key_lengths, before);
  put(index.leftpad, spec.leftpad);
  if (index.page_table >= 0) put(index.page_table, draw_page_table(spec, shape_of(problem), seed));
}

void put_floats(const op::Problem& problem, int tensor, const std::vector<float>& values, op::Buffers& buffers) {
  const auto t = static_cast<size_t>(tensor);
  op::store_row(values.data(), problem.tensors[t].dtype, values.size(), buffers[t].data());
}

/// Angles as models use them: position times 10000^(-2 p / rotary_dim).
void put_rotary(const op::Problem& problem, op::Buffers& buffers) {
  const TensorIndex index = index_tensors(problem);
  if (index.rotary_cos < 0) return;
  const ks_attention_fwd_shape& shape = shape_of(problem);
  const int64_t half = shape.rotary_dim / 2;
  std::vector<float> cosines, sines;
  for (int64_t position = 0; position < shape.rotary_rows; ++position)
    for (int64_t p = 0; p < half; ++p) {
      const double angle =
          static_cast<double>(position) * std::pow(10000.0, -static_cast<double>(p) / static_cast<double>(half));
      cosines.push_back(static_cast<float>(std::cos(angle)));
      sines.push_back(static_cast<float>(std::sin(angle)));
    }
  put_floats(problem, index.rotary_cos, cosines, buffers);
  put_floats(problem, index.rotary_sin, sines, buffers);
}

void put_small(const op::Problem& problem, uint64_t seed, op::Buffers& buffers) {
  const TensorIndex index = index_tensors(problem);
  put_rotary(problem, buffers);
  if (index.sinks >= 0) {
    std::vector<float> sinks(static_cast<size_t>(shape_of(problem).query_heads));
    op::fill_normal(base::mix64(seed, 0x73696E), sinks.size(), sinks.data());
    for (float& sink : sinks) sink *= 2;
    put_floats(problem, index.sinks, sinks, buffers);
  }
  for (const int tensor : {index.query_descale, index.key_descale, index.value_descale}) {
    if (tensor < 0) continue;
    base::Random random(base::mix64(seed, 0x646573 + static_cast<uint64_t>(tensor)));
    std::vector<float> factors(buffers[static_cast<size_t>(tensor)].size() / sizeof(float));
    for (float& factor : factors) factor = 0.5f + 0.75f * static_cast<float>(random.uniform());
    put_floats(problem, tensor, factors, buffers);
  }
}

/// Every character about equally often, in a secret order. With few heads only those in which every key counts: where
/// values hardly vary, or one key has all the weight, a wrong answer can look right.
std::vector<Character> draw_characters(size_t heads, uint64_t seed) {
  const size_t kinds = heads < kMixtureCharacters ? kSensitiveCharacters : kMixtureCharacters;
  base::Random random(base::mix64(seed, 0x636861));
  std::vector<Character> characters;
  for (const int32_t place : op::random_permutation(heads, random))
    characters.push_back(static_cast<Character>(static_cast<size_t>(place) % kinds));
  return characters;
}

/// Fills queries, keys and values of a problem whose lengths lie in the buffers already.
class Filler {
 public:
  Filler(const op::Problem& problem, const std::string& recipe, uint64_t seed, op::Buffers& buffers)
      : view_(problem, buffers),
        shape_(*view_.shape),
        buffers_(buffers),
        permuted_(recipe == "permuted_keys"),
        seed_(seed) {
    const auto mixture =
        draw_characters(static_cast<size_t>(shape_.batch) * static_cast<size_t>(shape_.kv_heads), seed);
    for (int64_t b = 0; b < shape_.batch; ++b)
      for (int64_t g = 0; g < shape_.kv_heads; ++g) {
        const uint64_t head_seed =
            base::mix64(base::mix64(seed, static_cast<uint64_t>(b)), static_cast<uint64_t>(g) + 0x68);
        const Character character = is_mixed(recipe) ? mixture[heads_.size()] : find_recipe(recipe).character;
        heads_.emplace_back(shape_, character, head_seed, view_.keys[static_cast<size_t>(b)]);
      }
  }

  void run() {
    std::vector<std::vector<int32_t>> orders(static_cast<size_t>(shape_.batch));
    std::vector<Piece> pieces;
    for (int64_t b = 0; b < shape_.batch; ++b) {
      const auto m = static_cast<size_t>(b);
      base::Random random(base::mix64(seed_, 0x7065726D + static_cast<uint64_t>(b)));
      if (permuted_) orders[m] = op::random_permutation(static_cast<size_t>(view_.keys[m]), random);
      cut(b, view_.rows[m], true, pieces);
      cut(b, view_.keys[m], false, pieces);
    }
    // Few large pieces are spread over all processors; many threads for little data would cost more than they bring.
    const auto useful = static_cast<int64_t>(pieces.size()) / 4 + 1;
    const auto threads = static_cast<int>(std::min<int64_t>(op::default_threads(), useful));
    op::parallel_tasks(static_cast<int64_t>(pieces.size()), threads, [&](int64_t p) {
      const Piece& piece = pieces[static_cast<size_t>(p)];
      if (piece.is_query)
        fill_queries(piece.b, piece.begin, piece.end);
      else
        fill_keys(piece.b, piece.begin, piece.end, orders[static_cast<size_t>(piece.b)]);
    });
  }

 private:
  /// Rows or keys begin .. end-1 of a member.
  struct Piece {
    int64_t b, begin, end;
    bool is_query;
  };
  static void cut(int64_t b, int64_t count, bool is_query, std::vector<Piece>& pieces) {
    constexpr int64_t kPiece = 64;
    for (int64_t begin = 0; begin < count; begin += kPiece)
      pieces.push_back({b, begin, std::min(begin + kPiece, count), is_query});
  }
  std::byte* at(int tensor, int64_t element, Dtype dtype) {
    return buffers_[static_cast<size_t>(tensor)].data() + static_cast<size_t>(element) * core::dtype_bytes(dtype);
  }
  const HeadMaker& head(int64_t b, int64_t g) const { return heads_[static_cast<size_t>(b * shape_.kv_heads + g)]; }

  void fill_queries(int64_t b, int64_t begin, int64_t end) {
    std::vector<float> row(static_cast<size_t>(shape_.key_dim));
    for (int64_t i = begin; i < end; ++i)
      for (int64_t h = 0; h < shape_.query_heads; ++h) {
        head(b, h / view_.group()).query_row(i * shape_.query_heads + h, row.data());
        op::store_row(row.data(), view_.query_dtype(), row.size(),
                      at(view_.index.query, view_.query_offset(b, i, h), view_.query_dtype()));
      }
  }

  void fill_keys(int64_t b, int64_t begin, int64_t end, const std::vector<int32_t>& order) {
    std::vector<float> key(static_cast<size_t>(shape_.key_dim)), value(static_cast<size_t>(shape_.value_dim));
    const int64_t old = view_.keys[static_cast<size_t>(b)] - shape_.new_keys;
    const Dtype dtype = view_.kv_dtype();
    for (int64_t j = begin; j < end; ++j)
      for (int64_t g = 0; g < shape_.kv_heads; ++g) {
        const int64_t source = order.empty() ? j : order[static_cast<size_t>(j)];
        const bool is_new = j >= old;
        head(b, g).key_row(source, key.data());
        if (shape_.values_in_keys == 0) {
          head(b, g).value_row(source, value.data());
          op::store_row(value.data(), dtype, value.size(),
                        is_new ? at(view_.index.new_value, view_.new_value_offset(b, j - old, g), dtype)
                               : at(view_.index.value, view_.value_offset(b, j, g), dtype));
        } else if (head(b, g).rules_values()) {
          head(b, g).value_row(source, key.data());
        }
        op::store_row(key.data(), dtype, key.size(),
                      is_new ? at(view_.index.new_key, view_.new_key_offset(b, j - old, g), dtype)
                             : at(view_.index.key, view_.key_offset(b, j, g), dtype));
      }
  }

  View view_;
  const ks_attention_fwd_shape& shape_;
  op::Buffers& buffers_;
  bool permuted_;
  uint64_t seed_;
  std::vector<HeadMaker> heads_;
};

/// Which rows of the cache (slots, all heads alike) a call may read: those of a member's keys behind its padding.
std::vector<uint8_t> readable_slots(const View& view) {
  std::vector<uint8_t> readable(static_cast<size_t>(view.shape->total_keys), 0);
  for (int64_t b = 0; b < view.shape->batch; ++b)
    for (int64_t j = view.leftpad[static_cast<size_t>(b)]; j < view.keys[static_cast<size_t>(b)] - view.shape->new_keys;
         ++j)
      readable[static_cast<size_t>(view.key_slot(b, j))] = 1;
  return readable;
}

/// Fills a slot of the cache with garbage.
void spoil(const View& view, int64_t slot, uint64_t seed, bool nan, op::Buffers& buffers) {
  const size_t element = core::dtype_bytes(view.kv_dtype());
  const auto spoil_tensor = [&](int tensor, int64_t columns) {
    if (tensor < 0) return;
    const auto count = static_cast<size_t>(columns * view.shape->kv_heads);
    op::fill_garbage(base::mix64(seed, static_cast<uint64_t>(slot)), view.kv_dtype(), count, nan,
                     buffers[static_cast<size_t>(tensor)].data() + static_cast<size_t>(slot) * count * element);
  };
  spoil_tensor(view.index.key, view.shape->key_dim);
  spoil_tensor(view.index.value, view.shape->value_dim);
}

void spoil_slack(const op::Problem& problem, uint64_t seed, bool nan_slack, op::Buffers& buffers) {
  const View view(problem, buffers);
  if (view.shape->kv_layout != KS_KV_CACHE && view.shape->kv_layout != KS_KV_PAGED) return;
  const auto readable = readable_slots(view);
  for (size_t slot = 0; slot < readable.size(); ++slot)
    if (readable[slot] == 0) spoil(view, static_cast<int64_t>(slot), seed, nan_slack, buffers);
}

/// Calls action(b, j) for each cached key that a call may read and no row sees.
template <typename Action>
void for_each_hidden_key(const View& view, Action action) {
  for (int64_t b = 0; b < view.shape->batch; ++b) {
    const auto m = static_cast<size_t>(b);
    const Visible seen = visible_to_any(*view.shape, view.rows[m], view.keys[m], view.leftpad[m]);
    for (int64_t j = view.leftpad[m]; j < view.keys[m] - view.shape->new_keys; ++j)
      if (seen.count() == 0 || j < seen.first || j > seen.last) action(b, j);
  }
}

/// The lengths that a problem always has, without its other inputs.
op::Buffers lengths_only(const op::Problem& problem) {
  op::Buffers buffers(problem.tensors.size());
  for (size_t t = 0; t < buffers.size(); ++t)
    if (problem.tensors[t].dtype == Dtype::kI32) buffers[t].resize(problem.tensors[t].bytes);
  put_lengths(problem, read_spec(problem.scenario), 0, buffers);
  return buffers;
}

}  // namespace

std::vector<op::Recipe> list_recipes(const op::Problem& problem) {
  const op::Buffers lengths = lengths_only(problem);
  bool hides_keys = false;
  for_each_hidden_key(View(problem, lengths), [&](int64_t, int64_t) { hides_keys = true; });
  std::vector<op::Recipe> recipes;
  for (const auto& recipe : kRecipes)
    if (hides_keys || std::string(recipe.name) != "masked_garbage") recipes.push_back({recipe.name, recipe.is_probe});
  return recipes;
}

void fill_inputs(const op::Problem& problem, const std::string& recipe, uint64_t seed, bool nan_slack,
                 op::Buffers& buffers) {
  static_cast<void>(find_recipe(recipe));
  put_lengths(problem, read_spec(problem.scenario), seed, buffers);
  put_small(problem, seed, buffers);
  Filler(problem, recipe, seed, buffers).run();
  spoil_slack(problem, base::mix64(seed, 0x736C61), nan_slack, buffers);
  if (recipe != "masked_garbage") return;
  const View view(problem, buffers);
  for_each_hidden_key(view, [&](int64_t b, int64_t j) {
    spoil(view, view.key_slot(b, j), base::mix64(seed, 0x68696464), false, buffers);
  });
}

}  // namespace ks::attention_fwd
