"""Baseline: PyTorch's scaled_dot_product_attention, whichever of its fused back ends is fastest on the shape (tried when
the shape is prepared). It allocates its output; moving that to where it belongs is not timed. It gives no LSE."""

import sys

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.bias import causal_lower_right
from torch.nn.functional import scaled_dot_product_attention

sys.path.insert(0, sys.path[0] + "/../worker")
from ks_torch import ResultsElsewhere, blank  # noqa: E402
from ks_worker import AttentionShape, Unsupported  # noqa: E402

BACKENDS = {"cudnn": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION, "efficient": SDPBackend.EFFICIENT_ATTENTION}
TRIES = 5


class TorchAttention(ResultsElsewhere):
    unwritten = ("lse",)

    def prepare(self, scenario, tensors, shape_blob):
        s = AttentionShape(shape_blob)
        if s.query_dtype == s.E4M3 or s.kv_dtype != s.query_dtype:
            raise Unsupported("no eight-bit types")
        if s.rows_layout != s.ROWS_DENSE or s.kv_layout != s.KV_DENSE:
            raise Unsupported("dense tensors only: no pages, caches or packed rows")
        if s.softcap or s.has_sinks or s.latent_dim or s.new_keys:
            raise Unsupported("no softcap, sinks, latent queries or appended keys")
        if s.window_right > 0 or (s.window_left >= 0 and s.window_left < s.max_keys - 1):
            raise Unsupported("no windows but as a mask in memory")
        self.choose(s, tensors)
        return s

    def choose(self, s, declared):
        """The fastest back end that takes the shape, on tensors of zeros."""
        tensors = {name: blank(declaration) for name, declaration in declared.items()}
        best, refusals = None, []
        for name, backend in BACKENDS.items():
            try:
                with torch.cuda.stream(self.stream):
                    self.backend = backend
                    call = self.bind_torch(s, tensors)
                    call()
                    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
                    begin.record()
                    for _ in range(TRIES):
                        call()
                    end.record()
                    torch.cuda.synchronize()
            except RuntimeError as error:
                refusals.append(f"{name}: {str(error).splitlines()[0][:120]}")
                continue
            finally:
                self.forget()
            time_ms = begin.elapsed_time(end)
            if best is None or time_ms < best[0]:
                best = (time_ms, name)
        if best is None:
            raise Unsupported("no fused back end takes it: " + "; ".join(refusals))
        self.backend = BACKENDS[best[1]]

    def bind_torch(self, s, t):
        query, key, value = (t[name].transpose(1, 2) for name in ("query", "key", "value"))
        output, backend = t["output"], self.backend
        # Its own causal mask ends at the first row's first key; ours ends at the last row's last key.
        causal = s.window_right == 0
        mask = causal_lower_right(s.max_rows, s.max_keys) if causal and s.max_rows != s.max_keys and s.max_rows > 1 else None
        plain_causal = causal and mask is None and s.max_rows > 1
        grouped = s.query_heads != s.kv_heads

        def call():
            with sdpa_kernel(backend):
                got = scaled_dot_product_attention(query, key, value, attn_mask=mask, is_causal=plain_causal, scale=s.scale, enable_gqa=grouped)
            return [(got.transpose(1, 2), output)]

        return self.keep(call)


if __name__ == "__main__":
    TorchAttention().serve()
