"""Baseline: FlashMLA's Hopper kernel for dense decoding, as vLLM ships it. Its tile schedule is computed inside the timed
call, as it must be once for every step of a server."""

import os
import sys

import torch

sys.path.insert(0, sys.path[0] + "/../worker")
from ks_torch import ResultsElsewhere  # noqa: E402
from ks_worker import AttentionShape, Unsupported  # noqa: E402

PAGE = 64


class FlashMla(ResultsElsewhere):
    def __init__(self, folder):
        super().__init__()
        self.folder = folder

    def load(self):
        torch.ops.load_library(os.path.join(self.folder, "vllm/_flashmla_C.abi3.so"))
        return {**super().load(), "package": "vllm 0.22.1", "tile_schedule": "inside the call"}

    def prepare(self, scenario, tensors, shape_blob):
        s = AttentionShape(shape_blob)
        if not s.latent_dim or not s.values_in_keys or (s.key_dim, s.value_dim, s.kv_heads) != (576, 512, 1):
            raise Unsupported("latent attention of 576 over 512 columns with one kv head only")
        if s.query_dtype not in (s.F16, s.BF16) or s.kv_dtype != s.query_dtype:
            raise Unsupported("fp16 and bf16 only")
        if s.kv_layout != s.KV_PAGED or s.page_size != PAGE or s.rows_layout != s.ROWS_DENSE:
            raise Unsupported("decoding over pages of 64 only")
        if s.window_left >= 0 or s.window_right > 0 or s.softcap or s.has_sinks or s.new_keys:
            raise Unsupported("no windows, softcap, sinks or appended keys")
        return self.try_out(s, tensors)

    def bind_torch(self, s, t):
        fwd = torch.ops._flashmla_C.dense_decode_fwd
        lse = t["lse"].squeeze(-1).transpose(-1, -2)
        causal = s.window_right == 0 and s.max_rows > 1

        def call():
            got = fwd(t["query"], t["key"], s.value_dim, t["key_lengths"], t["page_table"], s.scale, causal, None, None, t["output"])
            return [(got[1], lse)]

        return self.keep(call)


if __name__ == "__main__":
    FlashMla(sys.argv[1]).serve()
