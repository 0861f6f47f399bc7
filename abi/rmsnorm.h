/* KernelSeek candidate ABI, part 2: RMS normalisation of the rows of a matrix.
 *
 *   y[r,c] = x[r,c] / sqrt( mean_c(x[r,c]^2) + epsilon ) * weight[c]
 */
#ifndef KERNELSEEK_ABI_RMSNORM_H
#define KERNELSEEK_ABI_RMSNORM_H

#include "kernelseek.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ks_rmsnorm_shape {
  ks_header header;
  int32_t dtype;            /* of x, weight and y: KS_F32, KS_F16 or KS_BF16 */
  int32_t columns;          /* elements a row */
  int64_t rows;
  int64_t input_row_stride; /* elements from one row of x to the next, >= columns */
  int64_t output_row_stride; /* elements from one row of y to the next, >= columns */
  float epsilon;
} ks_rmsnorm_shape;

typedef struct ks_rmsnorm_call {
  ks_context context;
  const void *input;  /* dtype [rows, columns] */
  const void *weight; /* dtype [columns] */
  void *output;       /* dtype [rows, columns] */
} ks_rmsnorm_call;

KS_EXPORT ks_status ks_sizes(const ks_rmsnorm_shape *shape, ks_buffer_sizes *sizes);
KS_EXPORT ks_status ks_plan(const ks_rmsnorm_shape *shape, void *plan);
KS_EXPORT ks_status ks_run(const ks_rmsnorm_call *call);
KS_EXPORT ks_status ks_plan_lengths(const ks_rmsnorm_call *call); /* optional */

#ifdef __cplusplus
}
#endif
#endif /* KERNELSEEK_ABI_RMSNORM_H */
