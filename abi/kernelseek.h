/* KernelSeek candidate ABI, part 1 of 2: what every operator shares.
 *
 * A candidate is compiled against this header and its operator's own (for instance attention_fwd.h) and exports
 *
 *   ks_status ks_sizes(const SHAPE *shape, ks_buffer_sizes *sizes);   bytes of scratch, state and schedule
 *   ks_status ks_plan(const SHAPE *shape, void *plan);                fills KS_PLAN_BYTES once per shape, untimed
 *   ks_status ks_run(const CALL *call);                               the timed call
 *   ks_status ks_plan_lengths(const CALL *call);                      optional: writes `schedule` for given lengths
 *
 * where SHAPE and CALL are the operator's structs. A SHAPE begins with ks_header, a CALL begins with ks_context.
 * ks_sizes and ks_plan may answer KS_UNSUPPORTED. ks_plan sees shapes, strides, dtypes and maxima, never pointers or
 * lengths; a plan must hold no pointers. ks_run allocates nothing and may be captured in a graph.
 *
 * Plain C: compiles as C11 and C++17. Strides are in elements of the tensor they belong to, sizes in bytes where the
 * name says so. All structs are versioned by KS_ABI_VERSION and by their own struct_bytes.
 */
#ifndef KERNELSEEK_ABI_KERNELSEEK_H
#define KERNELSEEK_ABI_KERNELSEEK_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KS_ABI_VERSION 1u
#define KS_PLAN_BYTES 8192u      /* size of the plan buffer, host memory, 64-byte aligned */
#define KS_STATE_BYTES_MAX 65536u /* largest `state` that ks_sizes may ask for */

/* What a candidate's function answers. */
typedef int32_t ks_status;
enum {
  KS_OK = 0,
  KS_UNSUPPORTED = 1, /* from ks_sizes or ks_plan only: this shape is not handled */
  KS_FAILED = 2       /* anything else; the scenario's verdict is `crash` */
};

/* Element types. */
enum {
  KS_F32 = 1,  /* IEEE binary32 */
  KS_F16 = 2,  /* IEEE binary16 */
  KS_BF16 = 3, /* bfloat16 */
  KS_E4M3 = 4, /* 8-bit float, 4 exponent bits, no infinities (OCP FN) */
  KS_I32 = 5   /* int32_t: lengths, tables */
};

/* First member of every SHAPE. */
typedef struct ks_header {
  uint32_t abi_version;  /* KS_ABI_VERSION of the caller */
  uint32_t struct_bytes; /* sizeof(SHAPE) of the caller */
} ks_header;

/* What a candidate needs beside its tensors. */
typedef struct ks_buffer_sizes {
  uint64_t scratch_bytes;  /* poisoned before each checked call and each timed block */
  uint64_t state_bytes;    /* zeroed once before the first ks_run; each call leaves it as it found it */
  uint64_t schedule_bytes; /* written by ks_plan_lengths, kept for calls with the same lengths */
} ks_buffer_sizes;

/* First member of every CALL. */
typedef struct ks_context {
  uint32_t abi_version;  /* KS_ABI_VERSION of the caller */
  uint32_t struct_bytes; /* sizeof(CALL) of the caller */
  const void *shape;     /* the SHAPE given to ks_plan, host memory */
  const void *plan;      /* KS_PLAN_BYTES filled by ks_plan, host memory, read-only */
  void *scratch;         /* device memory, scratch_bytes, 256-byte aligned; null if 0 bytes */
  void *state;           /* device memory, state_bytes, 256-byte aligned; null if 0 bytes */
  void *schedule;        /* device memory, schedule_bytes, 256-byte aligned; null if 0 bytes */
  void *stream;          /* cudaStream_t on a CUDA device, null on the CPU */
  int32_t device;        /* CUDA device ordinal, 0 on the CPU */
  int32_t threads;       /* CPU: threads that ks_run may use, the caller's included; 0 on a CUDA device */
} ks_context;

/* Every candidate binary carries the ABI version and the hash of the sources that it was built from; the build
 * defines KS_SOURCE_HASH. Weak, so that several source files of one candidate may include this header. */
#if defined(__GNUC__)
#define KS_EXPORT __attribute__((visibility("default")))
#define KS_WEAK_EXPORT __attribute__((visibility("default"), weak))
#else
#define KS_EXPORT
#define KS_WEAK_EXPORT
#endif
#ifdef KS_SOURCE_HASH
extern KS_WEAK_EXPORT const uint32_t ks_abi_version;
extern KS_WEAK_EXPORT const char ks_source_hash[];
const uint32_t ks_abi_version = KS_ABI_VERSION;
const char ks_source_hash[] = KS_SOURCE_HASH;
#endif

#ifdef __cplusplus
}
#endif
#endif /* KERNELSEEK_ABI_KERNELSEEK_H */
