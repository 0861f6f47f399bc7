"""Baseline: released FlashAttention-3, two builds.

`vllm` is vLLM's build (variable lengths, pages, windows, sinks; every call as packed or paged), `dense` is fa3-fwd's
(dense, appended keys). One worker serves one build; the evaluator judges both and calls the faster right one `fa3`.
Packing and splits are left to the library's own heuristics. Scheduler metadata is computed inside the timed call, as it
must be once for every step of a server; with "planned" it is computed beforehand for the lengths at hand, and its time is
recorded by itself. Under an e4m3 cache a 16-bit query is cast to e4m3 inside the timed call, which
is how this library serves such a cache; the answer is then judged in the error class of e4m3.
"""

import os
import sys

import torch

sys.path.insert(0, sys.path[0] + "/../worker")
from ks_torch import ResultsElsewhere  # noqa: E402
from ks_worker import AttentionShape, Unsupported  # noqa: E402

FILES = {"vllm": "vllm/vllm_flash_attn/_vllm_fa3_C.abi3.so", "dense": "fa3_fwd/_C.abi3.so"}


class FlashAttention3(ResultsElsewhere):
    def __init__(self, build, folder, planned=""):
        super().__init__()
        self.build, self.folder = build, os.path.normpath(folder)
        self.plans_lengths = planned == "planned"
        self.planners, self.metadata_size = [], 0

    def load(self):
        torch.ops.load_library(os.path.join(self.folder, FILES[self.build]))
        self.ops = torch.ops._vllm_fa3_C if self.build == "vllm" else torch.ops.fa3_fwd
        versions = super().load()
        return {**versions, "build": self.build, "package": "vllm 0.22.1" if self.build == "vllm" else "fa3-fwd 0.0.3",
                "scheduler_metadata": "before the call, counted" if self.plans_lengths else "inside the call"}

    def prepare(self, scenario, tensors, shape_blob):
        s = AttentionShape(shape_blob)
        if s.query_dtype == s.F32:
            raise Unsupported("no fp32")
        self.casts_query = s.kv_dtype == s.E4M3 and s.query_dtype == s.BF16
        if s.kv_dtype != s.query_dtype and not self.casts_query:
            raise Unsupported("query and cache must be of one type")
        if self.plans_lengths and s.kv_layout not in (s.KV_PAGED, s.KV_CACHE):
            raise Unsupported("scheduler metadata is planned for caches only")
        self.metadata_size = 0
        self.error_class = "e4m3" if self.casts_query else ""
        (self.limits_vllm if self.build == "vllm" else self.limits_dense)(s)
        return self.try_out(s, tensors)

    def limits_vllm(self, s):
        if s.new_keys:
            raise Unsupported("this build appends no keys")
        if s.latent_dim and (s.key_dim - s.latent_dim > 64 or s.latent_dim > 512):
            raise Unsupported("latent dims up to 512 over 64 only")

    def limits_dense(self, s):
        if s.rows_layout != s.ROWS_DENSE or s.kv_layout not in (s.KV_DENSE, s.KV_CACHE):
            raise Unsupported("this build is dense only")
        if s.query_dtype == s.F16 or s.has_sinks or s.latent_dim:
            raise Unsupported("this build has no fp16, sinks or latent queries")
        if s.window_left >= 0 or s.window_right > 0:
            raise Unsupported("this build has no windows")

    def bind_torch(self, s, t):
        call = (self.call_vllm if self.build == "vllm" else self.call_dense)(s, t)
        # As [batch, heads, rows], or [heads, total rows] where rows are packed: the evaluator's has the heads last.
        lse = t["lse"].squeeze(-1).transpose(-1, -2)
        packed_result = self.build == "vllm" and s.rows_layout == s.ROWS_DENSE

        def with_lse():
            got = call()
            if packed_result:
                got = got.reshape(s.query_heads, s.batch, s.max_rows).transpose(0, 1)
            return [(got.reshape(lse.shape), lse)]

        return self.keep(with_lse)

    def masks(self, s):
        causal = s.window_right == 0 and s.window_left < 0
        return causal, (-1 if causal else s.window_left), (-1 if causal else s.window_right)

    def descales(self, s, t):
        if not s.has_descale:
            return None, None, None
        expand = lambda x: None if x is None else x.expand(s.batch, s.kv_heads)  # noqa: E731
        query = torch.ones(s.batch, s.kv_heads, device="cuda") if self.casts_query else t.get("query_descale")
        return expand(query), expand(t.get("key_descale")), expand(t.get("value_descale"))

    def query_of(self, query):
        """The query as the library takes it, and what must be done in the call to have it so."""
        if not self.casts_query:
            return query, lambda: None
        cast = torch.empty(query.shape, dtype=torch.float8_e4m3fn, device="cuda")
        return cast, lambda: cast.copy_(query)

    def call_vllm(self, s, t):
        packed = s.rows_layout == s.ROWS_PACKED
        flat = lambda x: x if x.dim() == 3 else x.reshape(-1, *x.shape[2:])  # noqa: E731
        query, output = flat(t["query"]), flat(t["output"])
        cu_rows = t["cu_rows"] if packed else torch.arange(0, (s.batch + 1) * s.max_rows, s.max_rows, dtype=torch.int32, device="cuda")
        key, value = t["key"], t.get("value")
        cu_keys = used = table = latent = None
        if s.latent_dim:
            latent, query = query[..., : s.latent_dim], query[..., s.latent_dim:]
            key, value = t["key"][..., s.latent_dim:], t["key"][..., : s.latent_dim]
        if s.kv_layout in (s.KV_PAGED, s.KV_CACHE):
            used, table = t["key_lengths"], t.get("page_table")
        elif s.kv_layout == s.KV_PACKED:
            cu_keys = t["cu_keys"]
        else:
            key, value = flat(key), flat(value)
            cu_keys = torch.arange(0, (s.batch + 1) * s.max_keys, s.max_keys, dtype=torch.int32, device="cuda")
        causal, left, right = self.masks(s)
        qd, kd, vd = self.descales(s, t)
        sinks, leftpad = t.get("sinks"), t.get("leftpad")
        fwd = self.ops.fwd
        query, get_query = self.query_of(query)
        metadata = self.planned_metadata(s, t, causal, left, right) if self.plans_lengths else None

        def call():
            get_query()
            return fwd(query, key, value, None, None, latent, output, cu_rows, cu_keys, None, None, used, s.max_rows, s.max_keys,
                       table, None, leftpad, None, None, None, qd, kd, vd, s.scale, causal, left, right, s.softcap, True, metadata, 0,
                       None, 0, sinks, 1, 0, None)[1]

        return call

    def planned_metadata(self, s, t, causal, left, right):
        """A buffer for the metadata of one set, and a way to fill it."""
        dtype = torch.float8_e4m3fn if s.kv_dtype == s.E4M3 else t["query"].dtype
        cu_rows = t["cu_rows"] if s.rows_layout == s.ROWS_PACKED else torch.arange(
            0, (s.batch + 1) * s.max_rows, s.max_rows, dtype=torch.int32, device="cuda")
        key_dim, value_dim = (s.key_dim - s.latent_dim, s.latent_dim) if s.latent_dim else (s.key_dim, s.value_dim)

        def plan():
            return self.ops.get_scheduler_metadata(
                s.batch, s.max_rows, s.max_keys, s.query_heads, s.kv_heads, key_dim, value_dim, dtype, t["key_lengths"], cu_rows,
                None, None, None, t.get("leftpad"), s.page_size or None, 0, causal, left, right, s.softcap > 0, 0, None, 0)

        if self.metadata_size == 0:  # tried out: the lengths are zeros, the size is that of the shape
            first = plan()
            self.metadata_size = first.numel()
            return first
        buffer = torch.zeros(self.metadata_size, dtype=torch.int32, device="cuda")
        self.planners.append(lambda: buffer.copy_(plan()))
        return buffer

    def planner(self, number):
        return self.planners[number]

    def forget(self):
        super().forget()
        self.planners.clear()

    def call_dense(self, s, t):
        causal, left, right = self.masks(s)
        qd, kd, vd = self.descales(s, t)
        fwd = self.ops.fwd
        query, get_query = self.query_of(t["query"])
        more = {}
        if s.kv_layout == s.KV_CACHE:
            more = {"seqused_k": t["key_lengths"], "leftpad_k": t.get("leftpad"), "k_new": t.get("new_key"), "v_new": t.get("new_value"),
                    "rotary_cos": t.get("rotary_cos"), "rotary_sin": t.get("rotary_sin"), "is_rotary_interleaved": s.rotary_style == 2}

        def call():
            get_query()
            return fwd(query, t["key"], t["value"], out=t["output"], q_descale=qd, k_descale=kd, v_descale=vd, softmax_scale=s.scale,
                       is_causal=causal, window_size_left=left, window_size_right=right, softcap=s.softcap, **more)[1]

        return call


if __name__ == "__main__":
    FlashAttention3(*sys.argv[1:]).serve()
