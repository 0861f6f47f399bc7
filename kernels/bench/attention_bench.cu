// Developer's tool: runs the candidate linked with it over an attention grid on this machine's GPU, checks sampled rows
// against a plain reference, and times graph replays. Not the project's judge: it trusts what it is linked with.
//
//   attention_bench GRID.tsv [BASELINES.tsv] [--ids 1-20,33] [--category WORD] [--no-time] [--no-check] [--repeat N]
//
// Keys and values that no member uses hold NaN, page-table entries past a member's pages are out of range.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <set>
#include <type_traits>

#include "attention_fwd.h"
#include "kernels/bench/reference.cuh"
#include "kernels/bench/scenario.h"

namespace ks::bench {

#define KS_CUDA(call)                                                                        \
  do {                                                                                       \
    const cudaError_t error_ = (call);                                                       \
    if (error_ != cudaSuccess) {                                                             \
      std::printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(error_)); \
      std::exit(2);                                                                          \
    }                                                                                        \
  } while (0)

/// Device memory by moving a pointer; emptied between scenarios.
struct Arena {
  char* base = nullptr;
  size_t size = 0, used = 0;
  template <typename T>
  T* take(int64_t count) {
    used = (used + 1023) / 1024 * 1024;
    T* piece = reinterpret_cast<T*>(base + used);
    used += std::max<int64_t>(count, 1) * sizeof(T) + 4096;
    if (used > size) throw std::runtime_error("arena too small");
    return piece;
  }
  template <typename T>
  T* put(const std::vector<T>& values) {
    T* piece = take<T>(values.size());
    if (!values.empty()) KS_CUDA(cudaMemcpy(piece, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
    return piece;
  }
};

struct Options {
  std::set<int> ids;
  std::string category;
  bool time = true, check = true;
  int repeat = 9;
};

struct Result {
  std::string verdict = "ok";
  double error = 0, lse_error = 0, time_us = 0, host_us = 0;
};

/// A scenario's buffers and its call.
/// T: of the query; TK: of keys and values; TO: of the output, the sinks and the rotary tables.
template <typename T, typename TK, typename TO>
struct Setup {
  ks_attention_fwd_shape shape{};
  ks_attention_fwd_call call{};
  ReferenceLayout layout{};
  T* Q;
  TK *K, *V;
  TO *O, *sinks = nullptr;
  RotaryTables<TO> rotary{};
  TK *K_after = nullptr, *V_after = nullptr;  ///< what appending must leave of the cache
  float* lse;
  int64_t total_rows = 0, key_rows = 0;
  alignas(64) unsigned char plan[KS_PLAN_BYTES];

  void set_descales(const AttentionRow& row, Arena& arena);
  void set_appended(const AttentionRow& row, Arena& arena, cudaStream_t stream, const int* keys_after);
  Setup(const AttentionRow& row, Arena& arena, cudaStream_t stream);
};

template <typename T>
constexpr int dtype_of() {
  return std::is_same_v<T, __half> ? KS_F16 : std::is_same_v<T, __nv_fp8_e4m3> ? KS_E4M3 : KS_BF16;
}

template <typename T, typename TK, typename TO>
Setup<T, TK, TO>::Setup(const AttentionRow& row, Arena& arena, cudaStream_t stream) {
  const int batch = row.batch;
  std::vector<int> cu_rows(batch + 1), cu_keys(batch + 1), table;
  for (int b = 0; b < batch; ++b) cu_rows[b + 1] = cu_rows[b] + row.rows[b], cu_keys[b + 1] = cu_keys[b] + row.keys[b];
  total_rows = cu_rows[batch];
  const int max_rows = *std::max_element(row.rows.begin(), row.rows.end());
  int max_keys = *std::max_element(row.keys.begin(), row.keys.end());
  const int kind = row.page_size ? 3 : row.cache ? 2 : row.packed ? 1 : 0;
  if (kind == 2) max_keys += 37;  // a cache is longer than what is in it
  int pages = 0, table_stride = 0;
  if (kind == 0 || kind == 2) key_rows = int64_t{batch} * max_keys;
  if (kind == 1) key_rows = cu_keys[batch] + 3;
  std::vector<uint8_t> used;
  if (kind == 3) {
    table_stride = (max_keys + row.page_size - 1) / row.page_size + 1;
    for (int b = 0; b < batch; ++b) pages += (row.keys[b] + row.page_size - 1) / row.page_size;
    pages += 2;
    std::vector<int> order(pages);
    for (int i = 0; i < pages; ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), std::mt19937(7));
    key_rows = int64_t{pages} * row.page_size;
    used.assign(key_rows, 0);
    table.assign(size_t(batch) * table_stride, 0x7fffffff);
    int next = 0;
    for (int b = 0; b < batch; ++b) {
      for (int j = 0; j * row.page_size < row.keys[b]; ++j) {
        table[size_t(b) * table_stride + j] = order[next];
        for (int i = 0; i < row.page_size && j * row.page_size + i < row.keys[b]; ++i) {
          used[size_t(order[next]) * row.page_size + i] = 1;
        }
        ++next;
      }
    }
  } else {
    used.assign(key_rows, 0);
    for (int b = 0; b < batch; ++b) {
      for (int j = 0; j < row.keys[b]; ++j) used[kind == 1 ? cu_keys[b] + j : int64_t{b} * max_keys + j] = 1;
    }
  }
  Q = arena.take<T>(total_rows * row.query_heads * row.key_dim);
  K = arena.take<TK>(key_rows * row.kv_heads * row.key_dim);
  V = row.latent ? K : arena.take<TK>(key_rows * row.kv_heads * row.value_dim);
  O = arena.take<TO>(total_rows * row.query_heads * row.value_dim);
  lse = arena.take<float>(total_rows * row.query_heads);
  const float query_size = row.softcap > 0 ? row.softcap / 4 : 1.0f;  // so that the cap matters
  fill_normal<<<2048, 256, 0, stream>>>(Q, total_rows * row.query_heads * row.key_dim, row.id * 8 + 1, query_size);
  fill_normal<<<2048, 256, 0, stream>>>(K, key_rows * row.kv_heads * row.key_dim, row.id * 8 + 2, 1.0f);
  if (!row.latent)
    fill_normal<<<2048, 256, 0, stream>>>(V, key_rows * row.kv_heads * row.value_dim, row.id * 8 + 3, 1.0f);
  if (key_rows > 0) {
    poison_unused<<<static_cast<int>(key_rows), 128, 0, stream>>>(K, row.latent ? nullptr : V, arena.put(used),
                                                                  row.kv_heads, row.key_dim, row.value_dim);
  }
  if (row.sink) {
    sinks = arena.take<TO>(row.query_heads);
    fill_normal<<<1, 256, 0, stream>>>(sinks, row.query_heads, row.id * 8 + 4, 2.0f);
  }

  ks_attention_fwd_shape& s = shape;
  s.header = {KS_ABI_VERSION, sizeof(s)};
  s.query_dtype = dtype_of<T>(), s.kv_dtype = dtype_of<TK>(), s.output_dtype = dtype_of<TO>();
  s.rows_layout = row.packed ? KS_ROWS_PACKED : KS_ROWS_DENSE;
  s.kv_layout = kind;
  s.batch = batch, s.query_heads = row.query_heads, s.kv_heads = row.kv_heads;
  s.key_dim = row.key_dim, s.value_dim = row.value_dim, s.max_rows = max_rows, s.max_keys = max_keys;
  s.total_rows = total_rows, s.total_keys = key_rows;
  s.page_size = row.page_size, s.page_count = pages, s.page_table_stride = table_stride;
  s.window_left = row.window_left, s.window_right = row.window_right, s.has_sinks = row.sink;
  s.scale = row.scale, s.softcap = row.softcap;
  s.query_row_stride = int64_t{row.query_heads} * row.key_dim, s.query_head_stride = row.key_dim;
  s.query_batch_stride = row.packed ? 0 : s.query_row_stride * max_rows;
  s.output_row_stride = int64_t{row.query_heads} * row.value_dim, s.output_head_stride = row.value_dim;
  s.output_batch_stride = row.packed ? 0 : s.output_row_stride * max_rows;
  const int64_t rows_per_batch = kind == 3 ? row.page_size : kind == 1 ? 0 : max_keys;
  s.key_row_stride = int64_t{row.kv_heads} * row.key_dim, s.key_head_stride = row.key_dim;
  s.key_batch_stride = s.key_row_stride * rows_per_batch;
  const int value_stride = row.latent ? row.key_dim : row.value_dim;
  s.value_row_stride = int64_t{row.kv_heads} * value_stride, s.value_head_stride = value_stride;
  s.value_batch_stride = s.value_row_stride * rows_per_batch;
  s.lse_head_stride = total_rows, s.lse_row_stride = 1, s.lse_batch_stride = row.packed ? 0 : max_rows;

  call.context.abi_version = KS_ABI_VERSION, call.context.struct_bytes = sizeof(call);
  call.context.shape = &shape, call.context.plan = plan, call.context.stream = stream;
  call.query = Q, call.key = K, call.value = V, call.output = O, call.lse = lse, call.sinks = sinks;
  if (row.latent) {
    s.latent_dim = row.value_dim, s.values_in_keys = 1;
    s.query_latent_batch_stride = s.query_batch_stride, s.query_latent_row_stride = s.query_row_stride;
    s.query_latent_head_stride = s.query_head_stride;
    call.query_latent = Q, call.query = Q + row.value_dim;
  }
  int* device_cu_rows = arena.put(cu_rows);
  call.cu_rows = row.packed ? device_cu_rows : nullptr;
  call.cu_keys = kind == 1 ? arena.put(cu_keys) : nullptr;
  int* keys_after = kind >= 2 ? arena.put(row.keys) : nullptr;
  call.key_lengths = keys_after;
  call.page_table = kind == 3 ? arena.put(table) : nullptr;
  layout = {
      device_cu_rows,   call.cu_keys, call.key_lengths, call.page_table, max_rows,    max_keys,      row.page_size,
      table_stride,     kind,         row.query_heads,  row.kv_heads,    row.key_dim, row.value_dim, row.window_left,
      row.window_right, row.scale,    row.softcap,      total_rows};
  layout.key_lengths = keys_after;
  layout.value_stride = value_stride, layout.rotary_style = row.rotary_style, layout.rotary_dim = row.rotary_dim;
  if (row.eight_bit_keys()) set_descales(row, arena);
  if (row.leftpad) {
    std::vector<int> pad(batch);
    for (int b = 0; b < batch; ++b) pad[b] = row.keys[b] * (b + 1) / (batch + 2);
    s.has_leftpad = 1;
    call.leftpad = layout.leftpad = arena.put(pad);
  }
  if (row.rotary_style != 0) {
    s.rotary_style = row.rotary_style, s.rotary_dim = row.rotary_dim, s.rotary_rows = max_keys;
    s.rotary_row_stride = row.rotary_dim / 2;
    TO* cosine = arena.take<TO>(int64_t{max_keys} * row.rotary_dim);
    rotary = {cosine, cosine + int64_t{max_keys} * row.rotary_dim / 2};
    fill_rotary<<<256, 256, 0, stream>>>(cosine, cosine + int64_t{max_keys} * row.rotary_dim / 2, max_keys,
                                         row.rotary_dim / 2);
    call.rotary_cos = rotary.cosine, call.rotary_sin = rotary.sine;
  }
  if constexpr (std::is_same_v<TK, TO>) {
    if (row.appends) set_appended(row, arena, stream, keys_after);
  }
}

/// One of each for a member and kv head, between 0.5 and 1.5.
template <typename T, typename TK, typename TO>
void Setup<T, TK, TO>::set_descales(const AttentionRow& row, Arena& arena) {
  std::mt19937 random(row.id);
  std::vector<float> descale[3];
  for (std::vector<float>& values : descale) {
    for (int i = 0; i < row.batch * row.kv_heads; ++i) values.push_back(0.5f + random() % 1024 / 1024.0f);
  }
  shape.has_descale = 1, shape.descale_batch_stride = row.kv_heads, shape.descale_head_stride = 1;
  if (row.eight_bit_query()) call.query_descale = layout.query_descale = arena.put(descale[0]);
  call.key_descale = layout.key_descale = arena.put(descale[1]);
  call.value_descale = layout.value_descale = arena.put(descale[2]);
}

/// The last rows' keys and values are the call's to append: their places hold NaN, and what they must become is made in
/// a copy of the cache.
template <typename T, typename TK, typename TO>
void Setup<T, TK, TO>::set_appended(const AttentionRow& row, Arena& arena, cudaStream_t stream, const int* keys_after) {
  const int fresh = row.rows[0];
  std::vector<int> before = row.keys;
  for (int& keys : before) keys -= fresh;
  const int64_t count = int64_t{row.batch} * fresh * row.kv_heads;
  TK* new_key = arena.take<TK>(count * row.key_dim);
  TK* new_value = arena.take<TK>(count * row.value_dim);
  fill_normal<<<256, 256, 0, stream>>>(new_key, count * row.key_dim, row.id * 8 + 5, 1.0f);
  fill_normal<<<256, 256, 0, stream>>>(new_value, count * row.value_dim, row.id * 8 + 6, 1.0f);
  shape.new_keys = fresh;
  shape.new_key_row_stride = int64_t{row.kv_heads} * row.key_dim, shape.new_key_head_stride = row.key_dim;
  shape.new_key_batch_stride = shape.new_key_row_stride * fresh;
  shape.new_value_row_stride = int64_t{row.kv_heads} * row.value_dim, shape.new_value_head_stride = row.value_dim;
  shape.new_value_batch_stride = shape.new_value_row_stride * fresh;
  call.new_key = new_key, call.new_value = new_value;
  call.key_lengths = arena.put(before);
  const int64_t keys = key_rows * row.kv_heads * row.key_dim, values = key_rows * row.kv_heads * row.value_dim;
  K_after = arena.take<TK>(keys), V_after = arena.take<TK>(values);
  // NaN where the appended keys belong, in the cache that the candidate gets.
  fill_value<<<256, 256, 0, stream>>>(K_after, count * row.key_dim, static_cast<TK>(NAN));
  fill_value<<<256, 256, 0, stream>>>(V_after, count * row.value_dim, static_cast<TK>(NAN));
  const int blocks = static_cast<int>(count);
  ReferenceLayout plain = layout;
  plain.rotary_style = 0;
  append_reference<<<blocks, 128, 0, stream>>>(plain, keys_after, fresh, K_after, V_after, rotary, K, V);
  KS_CUDA(cudaStreamSynchronize(stream));
  KS_CUDA(cudaMemcpyAsync(K_after, K, keys * sizeof(TK), cudaMemcpyDeviceToDevice, stream));
  KS_CUDA(cudaMemcpyAsync(V_after, V, values * sizeof(TK), cudaMemcpyDeviceToDevice, stream));
  append_reference<<<blocks, 128, 0, stream>>>(layout, keys_after, fresh, new_key, new_value, rotary, K_after, V_after);
}

/// Sampled rows against the reference, every element written, the same bits twice, state as it was.
template <typename T, typename TK, typename TO>
void check(const AttentionRow& row, Setup<T, TK, TO>& setup, Arena& arena, cudaStream_t stream, Result& result,
           uint64_t state_bytes) {
  const int64_t elements = setup.total_rows * row.query_heads * row.value_dim;
  const int64_t tuples = setup.total_rows * row.query_heads;
  auto* counts = arena.take<unsigned long long>(8);
  unsigned long long seen[2][4];
  for (int run = 0; run < 2; ++run) {
    fill_value<<<1024, 256, 0, stream>>>(setup.O, elements + 512, static_cast<TO>(NAN));
    fill_value<<<1024, 256, 0, stream>>>(setup.lse, tuples + 512, NAN);
    KS_CUDA(cudaMemsetAsync(counts, 0, 64, stream));
    if (ks_run(&setup.call) != KS_OK) {
      result.verdict = "run failed";
      return;
    }
    digest<<<512, 256, 0, stream>>>(setup.O, elements + 512, counts, counts + 1);
    digest<<<512, 256, 0, stream>>>(setup.lse, tuples + 512, counts + 2, counts + 3);
    KS_CUDA(cudaMemcpyAsync(seen[run], counts, 32, cudaMemcpyDeviceToHost, stream));
    const cudaError_t error = cudaStreamSynchronize(stream);
    if (error != cudaSuccess) {
      std::printf("FATAL %d %s: %s\n", row.id, row.name.c_str(), cudaGetErrorString(error));
      std::exit(3);
    }
  }
  if (std::memcmp(seen[0], seen[1], 32) != 0) result.verdict = "differs";
  if (seen[0][0] != 512 || seen[0][2] != 512) result.verdict = "nan " + std::to_string(seen[0][0] - 512);
  std::vector<unsigned char> state(state_bytes);
  KS_CUDA(cudaMemcpy(state.data(), setup.call.context.state, state_bytes, cudaMemcpyDeviceToHost));
  for (unsigned char byte : state) {
    if (byte != 0) result.verdict = "state left";
  }
  const double cost = double(setup.layout.max_keys + 64) * (row.key_dim + row.value_dim);
  const int64_t count = std::min<int64_t>(tuples, std::clamp<int64_t>(int64_t(1.5e9 / cost), 96, 20000));
  std::vector<Sample> samples;
  std::mt19937_64 random(row.id);
  std::vector<int> cu(row.batch + 1);
  for (int b = 0; b < row.batch; ++b) cu[b + 1] = cu[b] + row.rows[b];
  for (int64_t i = 0; i < count; ++i) {
    const int64_t tuple = count == tuples ? i : i < 8 ? tuples - 1 - i : int64_t(random() % tuples);
    const int at = static_cast<int>(tuple / row.query_heads);
    const int member = static_cast<int>(std::upper_bound(cu.begin(), cu.end(), at) - cu.begin()) - 1;
    samples.push_back({member, at - cu[member], static_cast<int>(tuple % row.query_heads)});
  }
  const int blocks = static_cast<int>(std::min<int64_t>(count, 1024));
  auto* errors = arena.take<SampleError>(count);
  const TK* K = setup.K_after ? setup.K_after : setup.K;
  const TK* V = setup.V_after ? setup.V_after : setup.V;
  check_rows<<<blocks, 256, 0, stream>>>(setup.layout, setup.Q, K, V, setup.sinks, setup.rotary, setup.O, setup.lse,
                                         arena.put(samples), int(count),
                                         arena.take<float>(int64_t{blocks} * setup.layout.max_keys), errors);
  if (setup.K_after) {
    KS_CUDA(cudaMemsetAsync(counts, 0, 64, stream));
    const int64_t key_count = setup.key_rows * row.kv_heads * row.key_dim;
    const int64_t value_count = setup.key_rows * row.kv_heads * row.value_dim;
    const float tolerance = row.rotary_style ? 0.01f : 0.0f;  // a bfloat16 step where a rounding may go either way
    count_different<<<512, 256, 0, stream>>>(K, setup.K, key_count, tolerance, counts);
    count_different<<<512, 256, 0, stream>>>(V, setup.V, value_count, 0.0f, counts + 1);
    KS_CUDA(cudaMemcpyAsync(seen[0], counts, 16, cudaMemcpyDeviceToHost, stream));
    KS_CUDA(cudaStreamSynchronize(stream));
    if (seen[0][0] + seen[0][1] != 0) {
      std::printf("  %d %s: cache differs in %llu key and %llu value elements\n", row.id, row.name.c_str(), seen[0][0],
                  seen[0][1]);
      result.verdict = "CACHE";
    }
  }
  std::vector<SampleError> host(count);
  KS_CUDA(cudaMemcpy(host.data(), errors, count * sizeof(SampleError), cudaMemcpyDeviceToHost));
  int64_t worst = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (host[i].output > host[worst].output) worst = i;
    result.error = std::max<double>(result.error, host[i].output);
    result.lse_error = std::max<double>(result.lse_error, host[i].lse);
  }
  double limit = row.dtype == "fp16" ? 0.0006 : row.eight_bit_query() ? 0.05 : 0.0045;
  double lse_limit = row.eight_bit_query() ? 0.02 : 0.01;
  if (row.rotary_style) limit *= 2, lse_limit *= 4;  // the rotated query is rounded
  if (result.error > limit || result.lse_error > lse_limit) {
    if (result.verdict == "ok") result.verdict = "WRONG";
    std::printf("  %d %s: worst at member %d row %d head %d: error %g\n", row.id, row.name.c_str(),
                samples[worst].member, samples[worst].row, samples[worst].head, host[worst].output);
  }
}

/// Median time of a call within a graph of several, in microseconds.
template <typename T, typename TK, typename TO>
void time_calls(Setup<T, TK, TO>& setup, cudaStream_t stream, const Options& options, Result& result) {
  cudaEvent_t begin, end;
  KS_CUDA(cudaEventCreate(&begin));
  KS_CUDA(cudaEventCreate(&end));
  const auto elapsed_us = [&](auto&& work) {
    KS_CUDA(cudaEventRecord(begin, stream));
    work();
    KS_CUDA(cudaEventRecord(end, stream));
    KS_CUDA(cudaEventSynchronize(end));
    float ms;
    KS_CUDA(cudaEventElapsedTime(&ms, begin, end));
    return ms * 1000.0;
  };
  ks_run(&setup.call);
  const double once = elapsed_us([&] { ks_run(&setup.call); });
  const int calls = static_cast<int>(std::clamp(1500.0 / once, 1.0, 40.0));
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  KS_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  timespec t0, t1;
  clock_gettime(CLOCK_MONOTONIC, &t0);
  for (int i = 0; i < calls; ++i) ks_run(&setup.call);
  clock_gettime(CLOCK_MONOTONIC, &t1);
  result.host_us = ((t1.tv_sec - t0.tv_sec) * 1e6 + (t1.tv_nsec - t0.tv_nsec) * 1e-3) / calls;
  KS_CUDA(cudaStreamEndCapture(stream, &graph));
  KS_CUDA(cudaGraphInstantiate(&exec, graph, 0));
  const timespec rest = {0, 20000000};  // the same pause before each: clocks are then comparable
  nanosleep(&rest, nullptr);
  double warm_us = 0;  // let clocks and caches settle after the checks
  while (warm_us < 2000) warm_us += elapsed_us([&] { KS_CUDA(cudaGraphLaunch(exec, stream)); });
  std::vector<double> times;
  for (int i = 0; i < options.repeat; ++i) {
    times.push_back(elapsed_us([&] { KS_CUDA(cudaGraphLaunch(exec, stream)); }) / calls);
  }
  std::sort(times.begin(), times.end());
  result.time_us = times[times.size() / 2];
  cudaGraphExecDestroy(exec);
  cudaGraphDestroy(graph);
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
}

template <typename T, typename TK, typename TO>
Result run_row(const AttentionRow& row, Arena& arena, cudaStream_t stream, const Options& options) {
  arena.used = 0;
  Setup<T, TK, TO> setup(row, arena, stream);
  Result result;
  ks_buffer_sizes sizes{};
  if (ks_sizes(&setup.shape, &sizes) != KS_OK || ks_plan(&setup.shape, setup.plan) != KS_OK) {
    result.verdict = "unsupported";
    return result;
  }
  setup.call.context.scratch = sizes.scratch_bytes ? arena.take<char>(sizes.scratch_bytes) : nullptr;
  setup.call.context.state = sizes.state_bytes ? arena.take<char>(sizes.state_bytes) : nullptr;
  if (sizes.scratch_bytes) KS_CUDA(cudaMemsetAsync(setup.call.context.scratch, 0xff, sizes.scratch_bytes, stream));
  if (sizes.state_bytes) KS_CUDA(cudaMemsetAsync(setup.call.context.state, 0, sizes.state_bytes, stream));
  if (options.check) check(row, setup, arena, stream, result, sizes.state_bytes);
  if (options.time && result.verdict != "run failed") time_calls(setup, stream, options, result);
  return result;
}

/// id -> fields of the baseline table.
std::map<int, std::vector<std::string>> read_baselines(const std::string& path) {
  std::map<int, std::vector<std::string>> table;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && line[0] != '#') table[std::stoi(line)] = split(line, '\t');
  }
  return table;
}

int run(const std::string& grid, const std::string& baselines, const Options& options) {
  const auto known = read_baselines(baselines);
  Arena arena;
  arena.size = size_t{14} << 30;
  KS_CUDA(cudaMalloc(&arena.base, arena.size));
  cudaStream_t stream;
  KS_CUDA(cudaStreamCreate(&stream));
  std::map<std::string, std::vector<double>> vs_fa3, vs_best;
  int right = 0, total = 0;
  std::printf("id name verdict err lse us host_us | fa3 best floor | fa3/us best/us floor/us\n");
  for (const AttentionRow& row : read_grid(grid)) {
    if (!options.ids.empty() && !options.ids.count(row.id)) continue;
    if (!options.category.empty() && !has(row.category, options.category.c_str())) continue;
    using Half = __half;
    using Bf16 = __nv_bfloat16;
    using E4m3 = __nv_fp8_e4m3;
    const Result r = row.dtype == "fp16"     ? run_row<Half, Half, Half>(row, arena, stream, options)
                     : row.eight_bit_query() ? run_row<E4m3, E4m3, Bf16>(row, arena, stream, options)
                     : row.eight_bit_keys()  ? run_row<Bf16, E4m3, Bf16>(row, arena, stream, options)
                                             : run_row<Bf16, Bf16, Bf16>(row, arena, stream, options);
    if (r.verdict == "unsupported") {
      std::printf("%d %s unsupported\n", row.id, row.name.c_str());
      continue;
    }
    ++total, right += r.verdict == "ok";
    double fa3 = 1e30, best = 1e30, floor = 0;
    const auto found = known.find(row.id);
    if (found != known.end()) {
      for (int column = 3; column <= 7; ++column) {
        const double us = found->second[column] == "-" ? 1e30 : std::stod(found->second[column]);
        if (column <= 4) fa3 = std::min(fa3, us);
        best = std::min(best, us);
      }
      floor = found->second[8] == "-" ? 0 : std::stod(found->second[8]);
    }
    std::printf("%d %s %s %.5f %.5f %.2f %.1f", row.id, row.name.c_str(), r.verdict.c_str(), r.error, r.lse_error,
                r.time_us, r.host_us);
    if (best < 1e29 && r.time_us > 0) {
      std::printf(" | %.1f %.1f %.1f | %.3f %.3f %.3f", fa3, best, floor, fa3 / r.time_us, best / r.time_us,
                  floor / r.time_us);
      vs_fa3[row.category].push_back(std::log(fa3 / r.time_us));
      vs_best[row.category].push_back(std::log(best / r.time_us));
    }
    std::printf("\n");
    std::fflush(stdout);
  }
  std::printf("right %d of %d\n", right, total);
  for (const auto& [category, logs] : vs_fa3) {
    double a = 0, b = 0;
    for (double x : logs) a += x;
    for (double x : vs_best[category]) b += x;
    std::printf("%-18s n=%zu vs_fa3 %.3f vs_best %.3f\n", category.c_str(), logs.size(), std::exp(a / logs.size()),
                std::exp(b / logs.size()));
  }
  return right == total ? 0 : 1;
}

}  // namespace ks::bench

int main(int argc, char** argv) {
  ks::bench::Options options;
  std::vector<std::string> files;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--ids") {
      for (const std::string& part : ks::bench::split(argv[++i], ',')) {
        const size_t dash = part.find('-');
        const int first = std::stoi(part), last = dash == std::string::npos ? first : std::stoi(part.substr(dash + 1));
        for (int id = first; id <= last; ++id) options.ids.insert(id);
      }
    } else if (word == "--category") {
      options.category = argv[++i];
    } else if (word == "--no-time") {
      options.time = false;
    } else if (word == "--no-check") {
      options.check = false;
    } else if (word == "--repeat") {
      options.repeat = std::stoi(argv[++i]);
    } else {
      files.push_back(word);
    }
  }
  if (files.empty()) {
    std::printf(
        "usage: attention_bench GRID.tsv [BASELINES.tsv] [--ids 1-20,33] [--category WORD] [--no-time] [--no-check]\n");
    return 2;
  }
  return ks::bench::run(files[0], files.size() > 1 ? files[1] : "", options);
}
