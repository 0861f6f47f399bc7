// The plain example with one mistake, to see what a verdict says of it: the causal diagonal starts in the top left corner,
// where it must end in the bottom right one. With as many keys as rows nothing is wrong.
// kernelseek: operator=attention_fwd
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <thread>
#include <vector>

#include "attention_fwd.h"

namespace {

using Shape = ks_attention_fwd_shape;
using Call = ks_attention_fwd_call;

constexpr int kRowTile = 16;
constexpr int kKeyTile = 64;
constexpr int kKeysTransposed = 1;
constexpr int kPolynomialExp = 0;
constexpr int kMostThreads = 8;
constexpr int kHeadsOutside = 0;

constexpr float kNone = -std::numeric_limits<float>::infinity();

// ---- element types ----

float from_bf16(uint16_t bits) {
  const uint32_t word = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &word, sizeof value);
  return value;
}

uint16_t to_bf16(float value) {
  uint32_t word;
  std::memcpy(&word, &value, sizeof word);
  return static_cast<uint16_t>((word + 0x7FFF + ((word >> 16) & 1)) >> 16);
}

float from_e4m3(uint8_t bits) {
  const int exponent = (bits >> 3) & 15, mantissa = bits & 7;
  const float magnitude = exponent == 0 ? static_cast<float>(mantissa) / 512.0f : std::ldexp(8.0f + static_cast<float>(mantissa), exponent - 10);
  return (bits & 0x80) != 0 ? -magnitude : magnitude;
}

uint8_t to_e4m3(float value) {
  const uint8_t sign = std::signbit(value) ? 0x80 : 0;
  const float magnitude = std::min(std::fabs(value), 448.0f);
  if (magnitude < 0.015625f) return sign | static_cast<uint8_t>(std::nearbyint(magnitude * 512.0f));
  int exponent;
  const float fraction = std::frexp(magnitude, &exponent);  // [0.5, 1)
  const int code = (exponent + 6) * 8 + static_cast<int>(std::nearbyint((fraction * 2 - 1) * 8));
  return sign | static_cast<uint8_t>(std::min(code, 0x7E));
}

float load(const void* data, int32_t dtype, int64_t i) {
  switch (dtype) {
    case KS_F32: return static_cast<const float*>(data)[i];
    case KS_F16: return static_cast<float>(static_cast<const _Float16*>(data)[i]);
    case KS_BF16: return from_bf16(static_cast<const uint16_t*>(data)[i]);
    default: return from_e4m3(static_cast<const uint8_t*>(data)[i]);
  }
}

void store(void* data, int32_t dtype, int64_t i, float value) {
  switch (dtype) {
    case KS_F32: static_cast<float*>(data)[i] = value; return;
    case KS_F16: static_cast<_Float16*>(data)[i] = static_cast<_Float16>(value); return;
    case KS_BF16: static_cast<uint16_t*>(data)[i] = to_bf16(value); return;
    default: static_cast<uint8_t*>(data)[i] = to_e4m3(value); return;
  }
}

void load_row(const void* data, int32_t dtype, int64_t start, int columns, float* out) {
  if (dtype == KS_F32) {
    std::memcpy(out, static_cast<const float*>(data) + start, sizeof(float) * static_cast<size_t>(columns));
  } else if (dtype == KS_BF16) {
    const uint16_t* row = static_cast<const uint16_t*>(data) + start;
    for (int c = 0; c < columns; ++c) out[c] = from_bf16(row[c]);
  } else {
    for (int c = 0; c < columns; ++c) out[c] = load(data, dtype, start + c);
  }
}

// ---- exp ----

/// exp(x) for x <= 0 by splitting off the power of two and a polynomial for the rest; relative error below 3e-7.
float polynomial_exp(float x) {
  x = std::max(x, -87.0f);
  const float scaled = x * 1.44269504f;
  const float whole = std::floor(scaled + 0.5f);
  const float r = x - whole * 0.693145752f - whole * 1.42860677e-6f;
  float p = 1.9875691e-4f;
  p = p * r + 1.3981999e-3f;
  p = p * r + 8.3334519e-3f;
  p = p * r + 4.1665796e-2f;
  p = p * r + 1.6666665e-1f;
  p = p * r + 5.0000001e-1f;
  p = p * r * r + r + 1.0f;
  const int32_t bits = (static_cast<int32_t>(whole) + 127) << 23;
  float power;
  std::memcpy(&power, &bits, sizeof power);
  return p * power;
}

float weight(float x) { return kPolynomialExp != 0 ? polynomial_exp(x) : std::exp(x); }

// ---- where things lie ----

struct Member {
  int64_t rows, keys, first_row, first_key, leftpad, position;  // position: of the member's first row, for rotary
};

Member member_of(const Call& call, const Shape& s, int b) {
  Member m{s.max_rows, s.max_keys, 0, 0, 0, 0};
  if (s.rows_layout == KS_ROWS_PACKED) {
    m.first_row = call.cu_rows[b];
    m.rows = call.cu_rows[b + 1] - call.cu_rows[b];
  }
  if (s.kv_layout == KS_KV_PACKED) {
    m.first_key = call.cu_keys[b];
    m.keys = call.cu_keys[b + 1] - call.cu_keys[b];
  }
  if (s.kv_layout == KS_KV_CACHE || s.kv_layout == KS_KV_PAGED) {
    m.position = call.key_lengths[b];
    m.keys = call.key_lengths[b] + s.new_keys;
  }
  if (s.has_leftpad != 0) m.leftpad = call.leftpad[b];
  return m;
}

int64_t key_place(const Call& call, const Shape& s, const Member& m, int b, int64_t j, int64_t batch_stride, int64_t row_stride) {
  if (s.kv_layout != KS_KV_PAGED) return b * batch_stride + (m.first_key + j) * row_stride;
  const int64_t page = call.page_table[static_cast<int64_t>(b) * s.page_table_stride + j / s.page_size];
  return page * batch_stride + (j % s.page_size) * row_stride;
}

/// Rotates the first rotary_dim columns of a row at a position.
void rotate(const Call& call, const Shape& s, int64_t position, float* row) {
  const int half = s.rotary_dim / 2;
  for (int c = 0; c < half; ++c) {
    const int first = s.rotary_style == KS_ROTARY_INTERLEAVED ? 2 * c : c;
    const int second = s.rotary_style == KS_ROTARY_INTERLEAVED ? 2 * c + 1 : c + half;
    const float cosine = load(call.rotary_cos, s.query_dtype, position * s.rotary_row_stride + c);
    const float sine = load(call.rotary_sin, s.query_dtype, position * s.rotary_row_stride + c);
    const float a = row[first], b = row[second];
    row[first] = a * cosine - b * sine;
    row[second] = a * sine + b * cosine;
  }
}

/// Writes the appended keys (rotated) and values of a member into the cache.
void append(const Call& call, const Shape& s, int b) {
  const Member m = member_of(call, s, b);
  std::vector<float> row(static_cast<size_t>(std::max(s.key_dim, s.value_dim)));
  for (int t = 0; t < s.new_keys; ++t) {
    for (int g = 0; g < s.kv_heads; ++g) {
      load_row(call.new_key, s.kv_dtype, b * s.new_key_batch_stride + t * s.new_key_row_stride + g * s.new_key_head_stride, s.key_dim, row.data());
      if (s.rotary_style != KS_ROTARY_NONE) rotate(call, s, m.position + t, row.data());
      const int64_t k = key_place(call, s, m, b, m.position + t, s.key_batch_stride, s.key_row_stride) + g * s.key_head_stride;
      for (int c = 0; c < s.key_dim; ++c) store(call.key, s.kv_dtype, k + c, row[static_cast<size_t>(c)]);
      load_row(call.new_value, s.kv_dtype, b * s.new_value_batch_stride + t * s.new_value_row_stride + g * s.new_value_head_stride, s.value_dim, row.data());
      const int64_t v = key_place(call, s, m, b, m.position + t, s.value_batch_stride, s.value_row_stride) + g * s.value_head_stride;
      for (int c = 0; c < s.value_dim; ++c) store(call.value, s.kv_dtype, v + c, row[static_cast<size_t>(c)]);
    }
  }
}

// ---- the algorithm ----

/// What one thread works with.
struct Workspace {
  std::vector<float> query, keys, values, scores, output;
  float maximum[kRowTile], sum[kRowTile];
  explicit Workspace(const Shape& s)
      : query(static_cast<size_t>(kRowTile) * s.key_dim), keys(static_cast<size_t>(kKeyTile) * s.key_dim),
        values(static_cast<size_t>(kKeyTile) * s.value_dim), scores(static_cast<size_t>(kRowTile) * kKeyTile),
        output(static_cast<size_t>(kRowTile) * s.value_dim) {}
};

void load_queries(const Call& call, const Shape& s, const Member& m, int b, int h, int64_t first, int64_t rows, float scale, Workspace& w) {
  for (int64_t r = 0; r < rows; ++r) {
    float* row = w.query.data() + r * s.key_dim;
    const int64_t i = m.first_row + first + r;
    if (s.latent_dim > 0)
      load_row(call.query_latent, s.query_dtype, b * s.query_latent_batch_stride + i * s.query_latent_row_stride + h * s.query_latent_head_stride, s.latent_dim, row);
    load_row(call.query, s.query_dtype, b * s.query_batch_stride + i * s.query_row_stride + h * s.query_head_stride, s.key_dim - s.latent_dim, row + s.latent_dim);
    if (s.rotary_style != KS_ROTARY_NONE) rotate(call, s, m.position + first + r, row);
    for (int c = 0; c < s.key_dim; ++c) row[c] *= scale;
  }
}

void load_tile(const Call& call, const Shape& s, const Member& m, int b, int g, int64_t first, int64_t keys, Workspace& w) {
  std::vector<float> row(static_cast<size_t>(s.key_dim));
  for (int64_t j = 0; j < keys; ++j) {
    const int64_t k = key_place(call, s, m, b, first + j, s.key_batch_stride, s.key_row_stride) + g * s.key_head_stride;
    if (kKeysTransposed != 0) {
      load_row(call.key, s.kv_dtype, k, s.key_dim, row.data());
      for (int c = 0; c < s.key_dim; ++c) w.keys[static_cast<size_t>(c) * kKeyTile + static_cast<size_t>(j)] = row[static_cast<size_t>(c)];
    } else {
      load_row(call.key, s.kv_dtype, k, s.key_dim, w.keys.data() + j * s.key_dim);
    }
    const int64_t v = key_place(call, s, m, b, first + j, s.value_batch_stride, s.value_row_stride) + g * s.value_head_stride;
    load_row(call.value, s.kv_dtype, v, s.value_dim, w.values.data() + j * s.value_dim);
  }
}

/// scores[j] = q . k_j
void score_row(const Shape& s, int64_t keys, const float* query, const float* tile, float* scores) {
  if (kKeysTransposed != 0) {
    std::fill(scores, scores + kKeyTile, 0.0f);
    for (int c = 0; c < s.key_dim; ++c)
      for (int j = 0; j < kKeyTile; ++j) scores[j] += query[c] * tile[c * kKeyTile + j];
    return;
  }
  for (int64_t j = 0; j < keys; ++j) {
    float dot = 0;
    for (int c = 0; c < s.key_dim; ++c) dot += query[c] * tile[j * s.key_dim + c];
    scores[j] = dot;
  }
}

/// One tile's scores of one row become weights; the running maximum, sum and output follow.
void absorb_row(const Shape& s, const Member& m, int64_t i, int64_t first, int64_t keys, int r, Workspace& w) {
  float* scores = w.scores.data() + r * kKeyTile;
  const int64_t diagonal = i;  // the mistake: i + m.keys - m.rows
  float largest = w.maximum[r];
  for (int64_t j = 0; j < keys; ++j) {
    const int64_t key = first + j;
    if (s.softcap > 0) scores[j] = s.softcap * std::tanh(scores[j] / s.softcap);
    const bool visible = key >= m.leftpad && (s.window_left < 0 || key >= diagonal - s.window_left) && (s.window_right < 0 || key <= diagonal + s.window_right);
    if (!visible) scores[j] = kNone;
    largest = std::max(largest, scores[j]);
  }
  if (largest == kNone) return;
  const float keep = w.maximum[r] == kNone ? 0.0f : std::exp(w.maximum[r] - largest);
  w.maximum[r] = largest;
  float sum = 0;
  for (int64_t j = 0; j < keys; ++j) {
    scores[j] = scores[j] == kNone ? 0.0f : weight(scores[j] - largest);
    sum += scores[j];
  }
  w.sum[r] = w.sum[r] * keep + sum;
  float* output = w.output.data() + r * s.value_dim;
  for (int c = 0; c < s.value_dim; ++c) output[c] *= keep;
  for (int64_t j = 0; j < keys; ++j) {
    const float p = scores[j];
    const float* value = w.values.data() + j * s.value_dim;
    for (int c = 0; c < s.value_dim; ++c) output[c] += p * value[c];
  }
}

void finish_row(const Call& call, const Shape& s, const Member& m, int b, int h, int64_t i, int r, float value_scale, Workspace& w) {
  float largest = w.maximum[r], sum = w.sum[r], factor = largest == kNone ? 0.0f : 1.0f;
  if (s.has_sinks != 0) {
    const float sink = load(call.sinks, s.query_dtype == KS_E4M3 ? KS_BF16 : s.query_dtype, h);
    const float top = std::max(largest, sink);
    factor = largest == kNone ? 0.0f : std::exp(largest - top);
    sum = sum * factor + std::exp(sink - top);
    largest = top;
  }
  const int64_t at = m.first_row + i;
  const int64_t o = b * s.output_batch_stride + at * s.output_row_stride + h * s.output_head_stride;
  for (int c = 0; c < s.value_dim; ++c)
    store(call.output, s.output_dtype, o + c, sum > 0 ? w.output[static_cast<size_t>(r * s.value_dim + c)] * factor / sum * value_scale : 0.0f);
  call.lse[b * s.lse_batch_stride + h * s.lse_head_stride + at * s.lse_row_stride] = sum > 0 ? largest + std::log(sum) : kNone;
}

/// Query rows first .. first + kRowTile - 1 of one member and head.
void attend(const Call& call, const Shape& s, int b, int h, int64_t first, Workspace& w) {
  const Member m = member_of(call, s, b);
  if (first >= m.rows) return;
  const int64_t rows = std::min<int64_t>(kRowTile, m.rows - first);
  const int g = h / (s.query_heads / s.kv_heads);
  const int64_t descale = static_cast<int64_t>(b) * s.descale_batch_stride + static_cast<int64_t>(g) * s.descale_head_stride;
  float scale = s.scale, value_scale = 1;
  if (s.has_descale != 0) {
    scale *= call.key_descale[descale] * (call.query_descale != nullptr ? call.query_descale[descale] : 1.0f);
    value_scale = call.value_descale[descale];
  }
  load_queries(call, s, m, b, h, first, rows, scale, w);
  std::fill(w.output.begin(), w.output.end(), 0.0f);
  std::fill(w.maximum, w.maximum + kRowTile, kNone);
  std::fill(w.sum, w.sum + kRowTile, 0.0f);
  const int64_t shift = m.keys - m.rows;
  const int64_t low = std::max<int64_t>({0, m.leftpad, s.window_left < 0 ? 0 : first + shift - s.window_left});
  const int64_t high = std::min<int64_t>(m.keys, s.window_right < 0 ? m.keys : first + rows + shift + s.window_right);
  for (int64_t tile = low; tile < high; tile += kKeyTile) {
    const int64_t keys = std::min<int64_t>(kKeyTile, high - tile);
    load_tile(call, s, m, b, g, tile, keys, w);
    for (int r = 0; r < rows; ++r) {
      score_row(s, keys, w.query.data() + r * s.key_dim, w.keys.data(), w.scores.data() + r * kKeyTile);
      absorb_row(s, m, first + r, tile, keys, r, w);
    }
  }
  for (int r = 0; r < rows; ++r) finish_row(call, s, m, b, h, first + r, r, value_scale, w);
}

}  // namespace

extern "C" {

ks_status ks_sizes(const ks_attention_fwd_shape*, ks_buffer_sizes* sizes) {
  *sizes = ks_buffer_sizes{};
  return KS_OK;
}

ks_status ks_plan(const ks_attention_fwd_shape*, void*) { return KS_OK; }

ks_status ks_run(const ks_attention_fwd_call* call) {
  const Shape& s = *static_cast<const Shape*>(call->context.shape);
  for (int b = 0; b < s.batch && s.new_keys > 0; ++b) append(*call, s, b);
  const int64_t tiles = (static_cast<int64_t>(s.max_rows) + kRowTile - 1) / kRowTile;
  const int64_t items = tiles * s.batch * s.query_heads;
  std::atomic<int64_t> next = 0;
  const auto work = [&] {
    Workspace workspace(s);
    for (int64_t i = next++; i < items; i = next++) {
      const int64_t tile = kHeadsOutside != 0 ? i % tiles : i / (static_cast<int64_t>(s.batch) * s.query_heads);
      const int64_t pair = kHeadsOutside != 0 ? i / tiles : i % (static_cast<int64_t>(s.batch) * s.query_heads);
      attend(*call, s, static_cast<int>(pair / s.query_heads), static_cast<int>(pair % s.query_heads), tile * kRowTile, workspace);
    }
  };
  std::vector<std::thread> threads;
  for (int t = 1; t < std::min(call->context.threads, kMostThreads); ++t) threads.emplace_back(work);
  work();
  for (auto& thread : threads) thread.join();
  return KS_OK;
}
}
