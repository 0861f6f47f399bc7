/* KernelSeek candidate ABI, part 2: attention forward.
 *
 * For each member b of the batch, query row i and query head h (kv head g = h / (query_heads / kv_heads)):
 *
 *   s[j] = scale * q_descale * k_descale * dot(Q[b,i,h,:], K[b,j,g,:])        j = 0 .. keys(b)-1
 *   s[j] = softcap > 0 ? softcap * tanh(s[j] / softcap) : s[j]
 *   s[j] = -inf unless   j >= leftpad(b)
 *                  and   window_left  < 0  or  j >= i + keys(b) - rows(b) - window_left
 *                  and   window_right < 0  or  j <= i + keys(b) - rows(b) + window_right
 *   LSE[b,h,i] = log( sum_j exp(s[j]) + (has_sinks ? exp(sink[h]) : 0) )       natural logarithm
 *   O[b,i,h,:] = v_descale * sum_j exp(s[j] - LSE[b,h,i]) * V[b,j,g,:]
 *
 * Causal is window_right = 0 (bottom-right aligned). A row with no visible key gives O = 0 exactly and LSE = -inf, or
 * LSE = sink[h] where there is a sink. Source of the semantics: the operator's contract.md.
 */
#ifndef KERNELSEEK_ABI_ATTENTION_FWD_H
#define KERNELSEEK_ABI_ATTENTION_FWD_H

#include "kernelseek.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How the query rows of the members lie. */
enum {
  KS_ROWS_DENSE = 0, /* Q[batch, max_rows, query_heads, key_dim], rows(b) = max_rows */
  KS_ROWS_PACKED = 1 /* Q[total_rows, ...]; member b owns rows cu_rows[b] .. cu_rows[b+1]-1; batch strides are 0 */
};

/* How the keys and values of the members lie. */
enum {
  KS_KV_DENSE = 0,  /* K[batch, max_keys, kv_heads, key_dim], keys(b) = max_keys */
  KS_KV_PACKED = 1, /* K[total_keys, ...]; member b owns keys cu_keys[b] .. cu_keys[b+1]-1; batch strides are 0 */
  KS_KV_CACHE = 2,  /* K[batch, max_keys, kv_heads, key_dim] of which the first key_lengths[b] are used */
  KS_KV_PAGED = 3   /* K[page_count, page_size, kv_heads, key_dim]; key j of b is row j % page_size of page
                       page_table[b * page_table_stride + j / page_size]; the first key_lengths[b] are used */
};

/* How rotary pairs lie in a row of rotary_dim columns. */
enum {
  KS_ROTARY_NONE = 0,
  KS_ROTARY_HALVES = 1,     /* column c is paired with c + rotary_dim/2 */
  KS_ROTARY_INTERLEAVED = 2 /* column 2c is paired with 2c + 1 */
};

/* Everything that is known before the pointers and the lengths are. */
typedef struct ks_attention_fwd_shape {
  ks_header header;

  int32_t query_dtype;  /* KS_F32, KS_F16, KS_BF16 or KS_E4M3 */
  int32_t kv_dtype;     /* as query_dtype, or KS_E4M3 under a 16-bit query */
  int32_t output_dtype; /* query_dtype; KS_BF16 where the query is KS_E4M3 */
  int32_t rows_layout;  /* KS_ROWS_* */
  int32_t kv_layout;    /* KS_KV_* */

  int32_t batch;       /* members */
  int32_t query_heads; /* multiple of kv_heads */
  int32_t kv_heads;
  int32_t key_dim;     /* columns of Q and K, latent columns included */
  int32_t value_dim;   /* columns of V and O */
  int32_t max_rows;    /* most query rows of any member */
  int32_t max_keys;    /* most keys of any member, appended ones included */
  int64_t total_rows;  /* query rows of all members together */
  int64_t total_keys;  /* rows allocated for keys: batch * max_keys, packed total, or page_count * page_size */

  int32_t page_size;         /* keys a page; 0 unless KS_KV_PAGED */
  int32_t page_count;        /* pages allocated; 0 unless KS_KV_PAGED */
  int32_t page_table_stride; /* entries of page_table from one member to the next */
  int32_t latent_dim;        /* MLA: the first latent_dim columns of a query row lie at query_latent, the remaining
                                key_dim - latent_dim at query. 0: all lie at query */
  int32_t values_in_keys;    /* MLA: 1 if V is the first value_dim columns of K (value == key) */

  int32_t new_keys;     /* keys that this call appends to each member before attending; 0: none. key_lengths[b]
                           counts the keys before; keys(b) = key_lengths[b] + new_keys */
  int32_t rotary_style; /* KS_ROTARY_*: applied to Q and to the appended keys (which enter the cache rotated) at
                           position key_lengths[b] + i, i the row within the call */
  int32_t rotary_dim;   /* leading columns that rotate */
  int32_t has_leftpad;  /* 1 if leftpad is given (KS_KV_CACHE only) */

  int32_t window_left;  /* keys visible before the diagonal; -1: unlimited */
  int32_t window_right; /* keys visible after the diagonal; -1: unlimited; 0: causal */
  int32_t has_sinks;    /* 1 if sinks is given: one logit a query head, query_dtype (KS_BF16 for KS_E4M3) */
  float scale;          /* multiplies the dot product */
  float softcap;        /* 0: none */

  int32_t has_descale; /* 1 if e4m3 descales are given, float, per (member, kv head) */
  int32_t descale_batch_stride, descale_head_stride; /* elements; both 0: one scalar for all */

  /* Strides in elements; the last dimension (columns) is contiguous everywhere. Batch strides are 0 where packed; for
   * pages, the "batch" stride goes from page to page and the "row" stride from key to key within a page. */
  int64_t query_batch_stride, query_row_stride, query_head_stride;
  int64_t query_latent_batch_stride, query_latent_row_stride, query_latent_head_stride;
  int64_t key_batch_stride, key_row_stride, key_head_stride;
  int64_t value_batch_stride, value_row_stride, value_head_stride;
  int64_t new_key_batch_stride, new_key_row_stride, new_key_head_stride;
  int64_t new_value_batch_stride, new_value_row_stride, new_value_head_stride;
  int64_t output_batch_stride, output_row_stride, output_head_stride;
  int64_t lse_batch_stride, lse_head_stride, lse_row_stride;
  int64_t rotary_row_stride; /* cos and sin: from one position to the next, rotary_dim/2 columns each */
  int64_t rotary_rows;       /* positions in the cos and sin tables */
} ks_attention_fwd_shape;

/* One call. Pointers are device memory (host memory on the CPU device), 256-byte aligned but for query under MLA;
 * a pointer whose tensor the shape does not have is null. */
typedef struct ks_attention_fwd_call {
  ks_context context;
  const void *query;           /* query_dtype */
  const void *query_latent;    /* query_dtype; MLA only */
  void *key;                   /* kv_dtype; written only where new_keys > 0 */
  void *value;                 /* kv_dtype; written only where new_keys > 0; equals key if values_in_keys */
  const void *new_key;         /* kv_dtype [batch, new_keys, kv_heads, key_dim] */
  const void *new_value;       /* kv_dtype [batch, new_keys, kv_heads, value_dim] */
  const int32_t *cu_rows;      /* [batch + 1]; KS_ROWS_PACKED */
  const int32_t *cu_keys;      /* [batch + 1]; KS_KV_PACKED */
  const int32_t *key_lengths;  /* [batch]; KS_KV_CACHE and KS_KV_PAGED */
  const int32_t *page_table;   /* [batch, page_table_stride]; KS_KV_PAGED */
  const int32_t *leftpad;      /* [batch]; has_leftpad */
  const void *rotary_cos;      /* query_dtype [rotary_rows, rotary_dim / 2] */
  const void *rotary_sin;      /* query_dtype [rotary_rows, rotary_dim / 2] */
  const void *sinks;           /* [query_heads] */
  const float *query_descale;  /* float; has_descale and an e4m3 query */
  const float *key_descale;    /* float; has_descale */
  const float *value_descale;  /* float; has_descale */
  void *output;                /* output_dtype, [batch, rows, query_heads, value_dim] or packed */
  float *lse;                  /* float, strides lse_* */
} ks_attention_fwd_call;

KS_EXPORT ks_status ks_sizes(const ks_attention_fwd_shape *shape, ks_buffer_sizes *sizes);
KS_EXPORT ks_status ks_plan(const ks_attention_fwd_shape *shape, void *plan);
KS_EXPORT ks_status ks_run(const ks_attention_fwd_call *call);
KS_EXPORT ks_status ks_plan_lengths(const ks_attention_fwd_call *call); /* optional */

#ifdef __cplusplus
}
#endif
#endif /* KERNELSEEK_ABI_ATTENTION_FWD_H */
