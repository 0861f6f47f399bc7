// Flash attention on the CPU. Members with many rows have their keys packed once, by all threads, into scratch memory
// that all of their row tiles then read; for members with few rows (decoding) each tile packs the blocks that it reads.
// Threads draw their work from a counter, live for one call and meet once, between packing and attending.
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "attend.h"

namespace ks::attention_cpu {
namespace {

/// Are the products of this shape made of bfloat16 pairs?
bool uses_pairs(const Shape& s) {
  return kPairProducts && (s.query_dtype == KS_BF16 || s.query_dtype == KS_E4M3);
}

/// Calls with FloatArithmetic or PairArithmetic, as the shape wants.
template <class Function>
void with_arithmetic(const Shape& s, Function&& call) {
#if defined(__AVX512BF16__) && HWY_TARGET <= HWY_AVX3
  if (uses_pairs(s)) return call(PairArithmetic{});
#endif
  call(FloatArithmetic{});
}

bool shares_blocks(int64_t rows, int64_t group) {
  return rows * group > kRowTile;
}

/// Packed blocks for which there must be room: as many as the members can have between them.
int64_t most_blocks(const Shape& s) {
  if (!shares_blocks(s.max_rows, s.query_heads / s.kv_heads)) return 0;
  if (s.kv_layout == KS_KV_PACKED) return s.total_keys / kKeyBlock + s.batch + 1;
  return s.batch * (round_up(s.max_keys, kKeyBlock) / kKeyBlock);
}

int64_t first_block(const Shape& s, const Member& m) {
  if (s.kv_layout == KS_KV_PACKED) return m.first_key / kKeyBlock + m.batch;
  return m.batch * (round_up(s.max_keys, kKeyBlock) / kKeyBlock);
}

/// Work for all threads: what one thread does is called with each number that it draws.
class Queue {
 public:
  explicit Queue(std::atomic<int64_t>& next) : next_(next), mine_(next.fetch_add(1, std::memory_order_relaxed)) {}
  /// Is the piece of work that is met now this thread's?
  bool draw() {
    if (met_++ != mine_) return false;
    mine_ = next_.fetch_add(1, std::memory_order_relaxed);
    return true;
  }

 private:
  std::atomic<int64_t>& next_;
  int64_t mine_, met_ = 0;
};

/// Where the threads of a call wait for each other, once.
class Meeting {
 public:
  explicit Meeting(int count) : missing_(count) {}
  void arrive_and_wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    if (--missing_ == 0) all_here_.notify_all();
    all_here_.wait(lock, [this] { return missing_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable all_here_;
  int missing_;
};

template <class Arithmetic>
void pack_shared(const Context<Arithmetic>& context, std::atomic<int64_t>& next, char* memory) {
  const Shape& s = context.s;
  Queue queue(next);
  for (int64_t b = 0; b < s.batch; ++b) {
    const Member m = member_of(context.call, s, b);
    if (!shares_blocks(m.rows, context.group)) continue;
    const Interval seen = visible_keys(s, m, 0, m.rows - 1);
    for (int64_t block = seen.begin / kKeyBlock; block * kKeyBlock < seen.end; ++block)
      for (int64_t g = 0; g < s.kv_heads; ++g)
        if (queue.draw())
          pack_block<Arithmetic>(
              context.call, s, context.layout, m, g, block * kKeyBlock,
              reinterpret_cast<typename Arithmetic::Unit*>(memory + context.workspace.room),
              context.shared + ((first_block(s, m) + block) * s.kv_heads + g) * context.layout.block_units);
  }
}

template <class Arithmetic>
void attend_all(const Context<Arithmetic>& context, std::atomic<int64_t>& next, char* memory) {
  const Shape& s = context.s;
  Queue queue(next);
  for (int64_t b = 0; b < s.batch; ++b) {
    const Member m = member_of(context.call, s, b);
    const int64_t tiles = round_up(m.rows * context.group, kRowTile) / kRowTile;
    const auto* blocks = context.shared + first_block(s, m) * s.kv_heads * context.layout.block_units;
    for (int64_t g = 0; g < s.kv_heads; ++g)
      for (int64_t t = tiles - 1; t >= 0; --t) {  // under a causal mask the last tiles are the longest
        if (!queue.draw()) continue;
        Tile<Arithmetic> tile(context, m, g, t * kRowTile, memory);
        const bool shared = shares_blocks(m.rows, context.group);
        tile.run(shared ? blocks + g * context.layout.block_units : nullptr, s.kv_heads * context.layout.block_units);
      }
  }
}

void append_all(const Call& call, const Shape& s) {
  if (s.new_keys == 0) return;
  for (int64_t b = 0; b < s.batch; ++b)
    append(call, s, member_of(call, s, b), static_cast<float*>(call.context.scratch));
}

template <class Arithmetic>
void run(const Call& call, const Shape& s) {
  const Workspace workspace = workspace_of<Arithmetic>(s);
  auto* scratch = static_cast<char*>(call.context.scratch);
  const Context<Arithmetic> context{
      call,
      s,
      layout_of<Arithmetic>(s),
      workspace,
      reinterpret_cast<typename Arithmetic::Unit*>(scratch + kMostThreads * workspace.bytes),
      s.query_heads / s.kv_heads};
  const int count = std::clamp(call.context.threads, 1, kMostThreads);
  std::atomic<int64_t> to_pack{0}, to_attend{0};
  Meeting packed(count);
  const auto work = [&](int t) {
    char* memory = scratch + t * workspace.bytes;
    if (most_blocks(s) > 0) {
      pack_shared(context, to_pack, memory);
      packed.arrive_and_wait();
    }
    attend_all(context, to_attend, memory);
  };
  std::thread threads[kMostThreads];
  for (int t = 1; t < count; ++t) threads[t] = std::thread(work, t);
  work(0);
  for (int t = 1; t < count; ++t) threads[t].join();
}

}  // namespace
}  // namespace ks::attention_cpu

extern "C" {

ks_status ks_sizes(const ks_attention_fwd_shape* shape, ks_buffer_sizes* sizes) {
  using namespace ks::attention_cpu;
  *sizes = ks_buffer_sizes{};
  with_arithmetic(*shape, [&](auto arithmetic) {
    using Arithmetic = decltype(arithmetic);
    const int64_t shared = most_blocks(*shape) * shape->kv_heads * layout_of<Arithmetic>(*shape).block_units * 4;
    sizes->scratch_bytes = static_cast<uint64_t>(kMostThreads * workspace_of<Arithmetic>(*shape).bytes + shared);
  });
  return KS_OK;
}

ks_status ks_plan(const ks_attention_fwd_shape*, void*) {
  return KS_OK;
}

ks_status ks_run(const ks_attention_fwd_call* call) {
  using namespace ks::attention_cpu;
  const auto& s = *static_cast<const ks_attention_fwd_shape*>(call->context.shape);
  append_all(*call, s);
  with_arithmetic(s, [&](auto arithmetic) { run<decltype(arithmetic)>(*call, s); });
  return KS_OK;
}
}
