// What an operator is to the evaluator: contract, grids, inputs, reference, structural probes, symmetries, tolerance
// and counts. An operator is a folder under operators/ (or anywhere, given by path) whose code is built as one shared
// library; the trusted oracle process loads it and calls ks_operator(). The evaluator knows no operator by name.
//
// Everything here is in host memory. A device other than the CPU gets its inputs as copies, and the transforms of
// `Symmetry` and the comparisons of `OutputRule` are plain data so that they can be carried out where the tensors lie.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "core/grid.h"

namespace ks::op {

/// Who writes a tensor.
enum class Role { kInput, kOutput, kInOut };

/// Where the address of a tensor goes in the operator's CALL struct.
struct PointerSlot {
  uint32_t call_offset = 0;  ///< offsetof(CALL, member)
  uint64_t byte_offset = 0;  ///< added to the tensor's address (MLA's rope half of a query row)
};

/// How a row of an output is judged. A row is the last dimension of the tensor's shape.
enum class OutputRule {
  kNone,           ///< an input
  kRelativeL2Row,  ///< |got - want|_2 / |want|_2 of each row at most `limit`; a row that is all zero must be exactly
                   ///< zero
  kAbsolute        ///< each element within `limit`; infinities must match by position and sign
};

/// One tensor of a problem: a strided box in a buffer of its own.
struct Tensor {
  std::string name;  ///< as the ABI's CALL member, e.g. "query"
  Role role = Role::kInput;
  core::Dtype dtype = core::Dtype::kF32;
  std::vector<int64_t> shape;    ///< logical dimensions, e.g. [batch, rows, heads, columns]
  std::vector<int64_t> strides;  ///< in elements, one a dimension
  uint64_t bytes = 0;            ///< of the buffer: every element that the strides reach lies inside
  std::vector<PointerSlot> slots;
  OutputRule rule = OutputRule::kNone;
  double limit = 0;  ///< for `rule`
  /// The same for a baseline that says that it rounds its query to e4m3 before it computes, and the mean row error that
  /// it may have; 0: as `limit`, and no rule on the mean.
  double e4m3_limit = 0, e4m3_mean_limit = 0;
};

/// One scenario made concrete: the ABI's structs as bytes, the tensors, the counts.
struct Problem {
  core::Scenario scenario;
  std::string shape_blob;  ///< bytes of the SHAPE struct
  std::string call_blob;   ///< bytes of the CALL struct: context and pointers zero, but for struct_bytes and version
  std::vector<Tensor> tensors;
  double flops = 0;  ///< operations of one call with these lengths (a multiply-add is two)
  double bytes = 0;  ///< compulsory bytes of one call: each used input read once, each output written once
  core::Dtype matrix_dtype = core::Dtype::kF32;  ///< the type whose matrix rate bounds the flops
  bool has_lengths = false;                      ///< the call reads lengths on the device (ks_plan_lengths may be used)
};

/// Contents of the tensors, one buffer each, in the order of Problem::tensors (outputs too, of their size).
using Buffers = std::vector<std::vector<std::byte>>;

/// What a correct call leaves, per tensor: for outputs (and the written part of in-outs) the values in logical order.
struct Expected {
  struct Rows {
    std::vector<float> values;       ///< dense over the tensor's shape; empty for inputs
    std::vector<uint8_t> known;      ///< a flag a row: 1 where the reference was computed (sampled rows), empty: all
    std::vector<uint8_t> unchanged;  ///< in-out tensors: 1 for a row that must keep its bytes; empty: none
  };
  std::vector<Rows> tensors;  ///< in the order of Problem::tensors
};

/// A way of filling the inputs.
struct Recipe {
  std::string name;       ///< "mixture", "outlier_channels", "constant_values", "masked_garbage", …
  bool is_probe = false;  ///< a structural probe (checked once) rather than hostile data
};

/// How far to compute the reference.
struct Coverage {
  enum class Kind { kAllRows, kSampledRows } kind = Kind::kAllRows;
  uint64_t seed = 0;         ///< which rows, when sampled
  int64_t sampled_rows = 0;  ///< about how many
};

/// A secret exact symmetry, as data. Applying it to the inputs of a solved problem gives fresh inputs, and applying it
/// to the expected outputs gives their answer: element (i0, i1, …) of the new tensor is
/// factor * old(source_0[i0], source_1[i1], …). An axis without an entry is the identity.
struct Symmetry {
  struct AxisMap {
    int tensor = 0, axis = 0;
    std::vector<int32_t> source;
  };
  struct ColumnFactor {  ///< multiplies the last axis; every factor is + or - a power of two, exact in the dtype
    int tensor = 0;
    std::vector<float> factor;
  };
  struct Replacement {  ///< small integer tensors (tables, cumulative lengths) are given anew
    int tensor = 0;
    std::vector<std::byte> bytes;
  };
  std::vector<AxisMap> axes;
  std::vector<ColumnFactor> factors;
  std::vector<Replacement> replacements;
};

/// A column of the operator's grids.
struct ColumnDoc {
  std::string name, meaning;
};

/// An operator. Implementations keep no state: every method is a pure function of its arguments, and safe to call
/// from several threads.
class Operator {
 public:
  virtual ~Operator() = default;

  virtual std::string name() const = 0;
  virtual std::vector<ColumnDoc> columns() const = 0;

  /// The problem of a scenario; lengths come from a seed that depends on the scenario's name alone. Throws ks::Error
  /// "origin: column …: …" where a cell cannot be read or cells contradict each other.
  virtual Problem problem(const core::Scenario& scenario) const = 0;

  /// The recipes that apply to a problem. The first, "mixture", is what timed inputs are drawn from.
  virtual std::vector<Recipe> recipes(const Problem& problem) const = 0;

  /// Fills the inputs (a pure function of problem, recipe and seed); outputs are left as they are. Slack that no call
  /// may read (pages past a length, gaps between rows) is filled with finite garbage, or NaN if `nan_slack`.
  virtual void make_inputs(const Problem& problem, const std::string& recipe, uint64_t seed, bool nan_slack,
                           Buffers& buffers) const = 0;

  /// The answer in float64 accumulation, on all rows or on some, using up to `threads` threads.
  virtual Expected solve(const Problem& problem, const Buffers& buffers, const Coverage& coverage,
                         int threads) const = 0;

  /// The plain GPU form of solve, on all rows: `inputs` are device addresses in the order of Problem::tensors, `values`
  /// those of dense float arrays for the outputs (null for inputs), `stream` a cudaStream_t. False where this operator
  /// has none for the problem; the caller checks it against solve() on sampled rows each time.
  virtual bool solve_on_gpu(const Problem& /*problem*/, const std::vector<const void*>& /*inputs*/,
                            const std::vector<float*>& /*values*/, void* /*stream*/) const {
    return false;
  }

  /// A random symmetry of the problem with these inputs; one without entries if the operator has none.
  virtual Symmetry draw_symmetry(const Problem& problem, const Buffers& buffers, uint64_t seed) const = 0;
};

/// Bumped when this interface changes; a library built against another version is refused.
inline constexpr int kOperatorInterfaceVersion = 4;

}  // namespace ks::op

/// Exported by every operator library.
#define KS_OPERATOR(Class)                                                                \
  extern "C" __attribute__((visibility("default"))) int ks_operator_interface_version() { \
    return ::ks::op::kOperatorInterfaceVersion;                                           \
  }                                                                                       \
  extern "C" __attribute__((visibility("default"))) ::ks::op::Operator* ks_operator() {   \
    return new Class();                                                                   \
  }
