#include "operators/attention_fwd/spec.h"

#include <algorithm>
#include <cmath>
#include <regex>

#include "base/hash.h"
#include "operators/attention_fwd/lengths.h"
#include "operators/cells.h"

namespace ks::attention_fwd {
namespace {

using core::Dtype;

double parse_real(const core::Scenario& scenario, const std::string& column, const std::string& text) {
  try {
    size_t used = 0;
    const double value = std::stod(text, &used);
    if (used == text.size() && std::isfinite(value)) return value;
  } catch (const std::logic_error&) {
  }
  op::cell_error(scenario, column, fmt::format("\"{}\" is not a number", text));
}

void read_dtype(const core::Scenario& scenario, Spec& spec) {
  const std::string& text = op::cell(scenario, "dtype");
  const size_t slash = text.find('/');
  try {
    spec.query_dtype = core::parse_dtype(text.substr(0, slash));
  } catch (const Error& e) {
    op::cell_error(scenario, "dtype", e.what());
  }
  if (spec.query_dtype == Dtype::kI32) op::cell_error(scenario, "dtype", "must be fp32, fp16, bf16 or e4m3");
  spec.kv_dtype = spec.query_dtype;
  if (slash != std::string::npos) {
    if (text.substr(slash) != "/e4m3kv" || core::dtype_bytes(spec.query_dtype) != 2)
      op::cell_error(scenario, "dtype", fmt::format("\"{}\": after a 16-bit type only \"/e4m3kv\" may follow", text));
    spec.kv_dtype = Dtype::kE4m3;
  }
  spec.output_dtype = spec.query_dtype == Dtype::kE4m3 ? Dtype::kBf16 : spec.query_dtype;
}

void read_sizes(const core::Scenario& scenario, Spec& spec) {
  spec.batch = static_cast<int32_t>(op::parse_number(scenario, "B", op::cell(scenario, "B"), 1, 1 << 20));
  const auto [query_heads, kv_heads] = op::parse_pair(scenario, "Hq/Hkv", 1, 4096);
  if (query_heads % kv_heads != 0)
    op::cell_error(scenario, "Hq/Hkv",
                   fmt::format("{} query heads are no multiple of {} kv heads", query_heads, kv_heads));
  const auto [key_dim, value_dim] = op::parse_pair(scenario, "D/Dv", 1, 1024);
  spec.query_heads = static_cast<int32_t>(query_heads);
  spec.kv_heads = static_cast<int32_t>(kv_heads);
  spec.key_dim = static_cast<int32_t>(key_dim);
  spec.value_dim = static_cast<int32_t>(value_dim);
  // The only pair of dimensions in use whose values are columns of the keys.
  spec.is_latent = key_dim == 576 && value_dim == 512;
}

/// "full", "causal", "win(l,r)", then "capN" and "sink" in any order.
void read_mask(const core::Scenario& scenario, Spec& spec) {
  const std::string& text = op::cell(scenario, "mask");
  static const std::regex kWindow(R"(win\((-?\d+),(-?\d+)\))");
  const auto words = op::split(text, ' ');
  std::smatch sides;
  if (words[0] == "causal") {
    spec.window_right = 0;
  } else if (std::regex_match(words[0], sides, kWindow)) {
    spec.window_left = static_cast<int32_t>(op::parse_number(scenario, "mask", sides[1].str(), -1, 1 << 26));
    spec.window_right = static_cast<int32_t>(op::parse_number(scenario, "mask", sides[2].str(), -1, 1 << 26));
  } else if (words[0] != "full") {
    op::cell_error(scenario, "mask", fmt::format("\"{}\" must begin with full, causal or win(left,right)", text));
  }
  for (size_t w = 1; w < words.size(); ++w) {
    if (words[w] == "sink") {
      spec.has_sinks = true;
    } else if (words[w].starts_with("cap")) {
      spec.softcap = static_cast<float>(parse_real(scenario, "mask", words[w].substr(3)));
      if (!(spec.softcap > 0)) op::cell_error(scenario, "mask", "the cap must be above 0");
    } else {
      op::cell_error(scenario, "mask", fmt::format("unknown word \"{}\"; known: capN, sink", words[w]));
    }
  }
}

/// What follows "append + rotary": "interleaved" and a number of columns.
void read_rotary(const core::Scenario& scenario, std::string_view text, Spec& spec) {
  spec.rotary_style = KS_ROTARY_HALVES;
  spec.rotary_dim = spec.key_dim;
  for (const auto& word : op::split(text, ' ')) {
    if (word.empty()) continue;
    if (word == "interleaved")
      spec.rotary_style = KS_ROTARY_INTERLEAVED;
    else
      spec.rotary_dim = static_cast<int32_t>(op::parse_number(scenario, "layout", word, 2, spec.key_dim));
  }
  if (spec.rotary_dim % 2 != 0) op::cell_error(scenario, "layout", "rotary columns come in pairs: give an even number");
}

/// "paged16 varlen", "contiguous cache + leftpad", "paged128 append + rotary": the store of the keys, then what is
/// done with it.
void read_layout(const core::Scenario& scenario, Spec& spec) {
  const std::string& text = op::cell(scenario, "layout");
  static const std::regex kLayout(
      R"((dense|varlen|contiguous cache|paged(\d+))( varlen)?( \+ leftpad)?( append)?( \+ rotary(.*))?)");
  std::smatch parts;
  if (!std::regex_match(text, parts, kLayout))
    op::cell_error(scenario, "layout",
                   fmt::format("\"{}\" is not known; it is dense, varlen, pagedN or contiguous cache, then for a cache "
                               "varlen, + leftpad, append, + rotary",
                               text));
  const std::string store = parts[1];
  const bool is_cache = store.starts_with("paged") || store == "contiguous cache";
  if (store == "varlen") {
    spec.rows_layout = KS_ROWS_PACKED;
    spec.kv_layout = KS_KV_PACKED;
  } else if (store == "contiguous cache") {
    spec.kv_layout = KS_KV_CACHE;
  } else if (store != "dense") {
    spec.kv_layout = KS_KV_PAGED;
    spec.page_size = static_cast<int32_t>(op::parse_number(scenario, "layout", parts[2].str(), 1, 1 << 16));
  }
  spec.has_leftpad = parts[4].matched;
  spec.appends = parts[5].matched;
  if (parts[3].matched) spec.rows_layout = KS_ROWS_PACKED;
  if (!is_cache && (parts[3].matched || spec.has_leftpad || spec.appends || parts[6].matched))
    op::cell_error(scenario, "layout", fmt::format("\"{}\": only a cache can have more than its name", text));
  if (spec.has_leftpad && spec.kv_layout != KS_KV_CACHE)
    op::cell_error(scenario, "layout", "left padding needs a contiguous cache");
  if (spec.appends && spec.rows_layout == KS_ROWS_PACKED)
    op::cell_error(scenario, "layout", "keys are appended for dense rows only");
  if (spec.appends && (spec.kv_dtype != spec.query_dtype || spec.kv_dtype == Dtype::kE4m3))
    op::cell_error(scenario, "layout", "keys are appended to a cache of the query's type, fp32, fp16 or bf16");
  if (parts[6].matched && !spec.appends) op::cell_error(scenario, "layout", "rotary goes with append");
  if (parts[6].matched) read_rotary(scenario, parts[7].str(), spec);
}

/// Notes are for people, but for "scale x", "scale x/y" and "random descale".
void read_note(const core::Scenario& scenario, Spec& spec) {
  const std::string& text = op::cell(scenario, "note");
  static const std::regex kScale(R"((?:^|[ ,;])scale ([0-9.eE+-]+)(?:/([0-9.eE+-]+))?)");
  std::smatch parts;
  spec.scale = 1.0f / std::sqrt(static_cast<float>(spec.key_dim));
  if (std::regex_search(text, parts, kScale)) {
    double value = parse_real(scenario, "note", parts[1]);
    if (parts[2].matched) value /= parse_real(scenario, "note", parts[2]);
    if (!(value > 0) || !std::isfinite(value)) op::cell_error(scenario, "note", "the scale must be above 0");
    spec.scale = static_cast<float>(value);
  }
  const bool per_head = text.find("random descale (B,Hkv)") != std::string::npos;
  if (per_head && spec.kv_dtype != Dtype::kE4m3) op::cell_error(scenario, "note", "descales go with e4m3 keys");
  if (spec.kv_dtype == Dtype::kE4m3) spec.descale = per_head ? Descale::kPerHead : Descale::kScalar;
}

bool all_equal(const std::vector<int32_t>& values) {
  return std::adjacent_find(values.begin(), values.end(), std::not_equal_to<>()) == values.end();
}

void read_all_lengths(const core::Scenario& scenario, Spec& spec) {
  spec.rows = read_lengths(scenario, "Sq", spec.batch);
  spec.keys = op::cell(scenario, "Sk") == "=q" ? spec.rows : read_lengths(scenario, "Sk", spec.batch);
  if (spec.rows_layout == KS_ROWS_DENSE && !all_equal(spec.rows))
    op::cell_error(scenario, "Sq", "dense rows have one length; give the layout \"varlen\" for several");
  if (spec.kv_layout == KS_KV_DENSE && !all_equal(spec.keys))
    op::cell_error(scenario, "Sk", "dense keys have one length; give the layout \"varlen\" or a cache for several");
  if (*std::max_element(spec.rows.begin(), spec.rows.end()) == 0)
    op::cell_error(scenario, "Sq", "no member has a row: there is nothing to compute");
}

/// Appending: Sk is what the longest member holds afterwards; the others hold less, the first exactly what it brought.
void draw_append_lengths(const core::Scenario& scenario, Spec& spec) {
  const int32_t brought = spec.rows[0], most = spec.keys[0];
  if (!all_equal(spec.keys) || most < brought)
    op::cell_error(scenario, "Sk",
                   "where keys are appended it is one number, not below Sq: the longest member's total");
  base::Random random(shape_seed(scenario, "append"));
  for (auto& keys : spec.keys)
    keys = brought + static_cast<int32_t>(random.below(static_cast<uint64_t>(most - brought + 1)));
  spec.keys.front() = brought;
  spec.keys.back() = most;
}

void draw_leftpad(const core::Scenario& scenario, Spec& spec) {
  base::Random random(shape_seed(scenario, "leftpad"));
  for (const int32_t keys : spec.keys) {
    const int32_t old = std::max(keys - spec.new_keys(), 1);
    spec.leftpad.push_back(static_cast<int32_t>(random.below(static_cast<uint64_t>(old))));
  }
  if (spec.batch > 1) spec.leftpad[0] = 0;
}

}  // namespace

Spec read_spec(const core::Scenario& scenario) {
  Spec spec;
  read_dtype(scenario, spec);
  read_sizes(scenario, spec);
  read_mask(scenario, spec);
  read_layout(scenario, spec);
  read_note(scenario, spec);
  read_all_lengths(scenario, spec);
  if (spec.appends) draw_append_lengths(scenario, spec);
  if (spec.has_leftpad) draw_leftpad(scenario, spec);
  if (spec.is_latent && (spec.kv_heads != 1 || spec.appends))
    op::cell_error(scenario, "D/Dv", "576/512 is MLA: one kv head, nothing appended");
  return spec;
}

std::vector<op::ColumnDoc> column_docs() {
  return {{"dtype", "fp32, fp16, bf16 or e4m3; bf16/e4m3kv: e4m3 keys and values under a bf16 query"},
          {"B", "members of the batch"},
          {"Hq/Hkv", "query heads / key and value heads"},
          {"Sq", "query rows of each member: one number, or a list (16x1024, 8192+15x128, 9x~1024, 64..505 step 7)"},
          {"Sk", "keys of each member, as Sq; =q: as many as rows"},
          {"D/Dv", "columns of queries and keys / of values; 576/512 is MLA"},
          {"mask", "full, causal or win(left,right), then capN (softcap) and sink"},
          {"layout", "dense, varlen, pagedN, contiguous cache; a cache also: varlen, + leftpad, append, + rotary"},
          {"note", "for people; \"scale x/y\" sets the scale, \"random descale (B,Hkv)\" gives each head its own"}};
}

Visible visible_keys(const ks_attention_fwd_shape& shape, int64_t row, int64_t rows, int64_t keys, int64_t leftpad) {
  const int64_t diagonal = row + keys - rows;
  Visible visible{leftpad, keys - 1};
  if (shape.window_left >= 0) visible.first = std::max(visible.first, diagonal - shape.window_left);
  if (shape.window_right >= 0) visible.last = std::min(visible.last, diagonal + shape.window_right);
  return visible;
}

Visible visible_to_any(const ks_attention_fwd_shape& shape, int64_t rows, int64_t keys, int64_t leftpad) {
  if (rows == 0) return {};
  // The bounds move by one from row to row, so what all rows see together has no holes.
  const Visible first = visible_keys(shape, 0, rows, keys, leftpad);
  const Visible last = visible_keys(shape, rows - 1, rows, keys, leftpad);
  return {first.first, last.last};
}

}  // namespace ks::attention_fwd
