"""Baseline: released FlashAttention-3, the faster right one of two builds per scenario.

`vllm` is vLLM's build (variable lengths, pages, windows, sinks; every call as packed or paged), `dense` is fa3-fwd's
(dense, appended keys). One worker serves one build; the evaluator judges both under the names fa3.vllm and fa3.dense
and takes the faster right one as fa3. Scheduler metadata is computed inside the timed call.
"""

import os
import sys

import torch

sys.path.insert(0, sys.path[0] + "/../worker")
from ks_torch import TorchWorker, as_torch  # noqa: E402
from ks_worker import AttentionShape, Unsupported  # noqa: E402


def common_limits(s):
    if s.query_dtype == s.F32:
        raise Unsupported("no fp32")
    if s.kv_dtype != s.query_dtype:
        raise Unsupported("query and cache must be of one type")
    if s.has_leftpad:
        raise Unsupported("no left padding")


class FlashAttention3(TorchWorker):
    def __init__(self, build):
        super().__init__()
        self.build = build
        self.lse = {}

    def load(self):
        folder = os.environ.get("KERNELSEEK_FA3", os.path.join(sys.prefix, "lib", "fa3"))
        name = {"vllm": "_vllm_fa3_C.abi3.so", "dense": "_C.abi3.so"}[self.build]
        torch.ops.load_library(os.path.join(folder, name))
        self.ops = torch.ops._vllm_fa3_C if self.build == "vllm" else torch.ops.fa3_fwd
        versions = super().load()
        return {**versions, "build": self.build, "package": "vllm 0.22.1" if self.build == "vllm" else "fa3-fwd 0.0.3"}

    def prepare(self, scenario, tensors, shape_blob):
        s = AttentionShape(shape_blob)
        common_limits(s)
        (self.limits_vllm if self.build == "vllm" else self.limits_dense)(s)
        return s

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

    def bind(self, s, tensors):
        t = {name: as_torch(tensor) for name, tensor in tensors.items()}
        return (self.bind_vllm if self.build == "vllm" else self.bind_dense)(s, t)

    def masks(self, s):
        causal = s.window_right == 0 and s.window_left < 0
        return causal, (-1 if causal else s.window_left), (-1 if causal else s.window_right)

    def descales(self, s, t):
        if not s.has_descale:
            return None, None, None
        expand = lambda x: None if x is None else x.expand(s.batch, s.kv_heads)  # noqa: E731
        return tuple(expand(t.get(name)) for name in ("query_descale", "key_descale", "value_descale"))

    def bind_vllm(self, s, t):
        packed = s.rows_layout == s.ROWS_PACKED
        flat = lambda x: x if x.dim() == 3 else x.reshape(-1, *x.shape[2:])  # noqa: E731
        query, output = flat(t["query"]), flat(t["output"])
        cu_rows = t["cu_rows"] if packed else torch.arange(0, (s.batch + 1) * s.max_rows, s.max_rows, dtype=torch.int32, device="cuda")
        key, value = t["key"], t.get("value")
        cu_keys = used = table = latent = None
        if s.latent_dim:
            latent, query = query[..., : s.latent_dim], query[..., s.latent_dim:]
            key, value = t["key"][..., s.latent_dim:], t["key"][..., : s.latent_dim]
        if s.kv_layout == s.KV_PAGED:
            used, table = t["key_lengths"], t["page_table"]
        elif s.kv_layout == s.KV_PACKED:
            cu_keys = t["cu_keys"]
        elif s.kv_layout == s.KV_CACHE:
            # A contiguous cache is a cache of pages as long as a member.
            used = t["key_lengths"]
            table = torch.arange(s.batch, dtype=torch.int32, device="cuda").reshape(-1, 1)
        else:
            key, value = flat(key), flat(value)
            cu_keys = torch.arange(0, (s.batch + 1) * s.max_keys, s.max_keys, dtype=torch.int32, device="cuda")
        causal, left, right = self.masks(s)
        qd, kd, vd = self.descales(s, t)
        sinks, lse = t.get("sinks"), self.lse_of(s, t)
        fwd = self.ops.fwd

        def call():
            out = fwd(query, key, value, None, None, latent, output, cu_rows, cu_keys, None, None, used, s.max_rows, s.max_keys,
                      table, None, None, None, None, None, qd, kd, vd, s.scale, causal, left, right, s.softcap, True, None, 0,
                      None, 0, sinks, 1, 0, None)
            return out

        # The library allocates its LSE; moving it to where it belongs is not part of its work (see finish).
        number = len(self.lse)
        self.lse[number] = None

        def timed():
            self.lse[number] = (call()[1], lse, s, packed)

        return timed

    def finish(self, sets):
        for number in sets:
            got, lse, s, packed = self.lse[number]
            lse.copy_(got.reshape(lse.shape) if packed or got.dim() == 3 else got.reshape(s.query_heads, s.batch, s.max_rows).transpose(0, 1).reshape(lse.shape))
        torch.cuda.synchronize()

    def forget(self):
        super().forget()
        self.lse.clear()

    def bind_dense(self, s, t):
        causal, left, right = self.masks(s)
        qd, kd, vd = self.descales(s, t)
        fwd = self.ops.fwd
        lse = self.lse_of(s, t)
        number = len(self.lse)
        self.lse[number] = None

        def timed():
            out = fwd(t["query"], t["key"], t["value"], out=t["output"], q_descale=qd, k_descale=kd, v_descale=vd,
                      softmax_scale=s.scale, is_causal=causal, window_size_left=left, window_size_right=right, softcap=s.softcap)
            self.lse[number] = (out[1], lse, s, False)

        return timed

    @staticmethod
    def lse_of(s, t):
        """LSE as [batch, heads, rows] or, packed, [heads, rows]: the evaluator's tensor has the heads last, and a column."""
        lse = t["lse"].squeeze(-1)
        return lse.transpose(-1, -2)


if __name__ == "__main__":
    FlashAttention3(sys.argv[1]).serve()
