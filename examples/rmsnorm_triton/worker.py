"""A candidate in Triton: RMSNorm, a program a row, the whole row in registers. `kernelseek evaluate
examples/rmsnorm_triton --device cuda --unsealed` judges it as it would a .cu file. Unsealed, because Triton starts a compiler
when a shape is new, which the sandbox forbids; the record says so."""

import struct
import sys

import torch
import triton
import triton.language as tl

sys.path.insert(0, sys.argv[1])
from ks_torch import TorchWorker  # noqa: E402
from ks_worker import Unsupported  # noqa: E402

WIDEST_ROW = 16384


@triton.jit
def rmsnorm_kernel(input, weight, output, columns, input_stride, output_stride, epsilon, block: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, block)
    inside = column < columns
    x = tl.load(input + row * input_stride + column, mask=inside, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(x * x, axis=0) / columns + epsilon)
    w = tl.load(weight + column, mask=inside, other=0.0).to(tl.float32)
    tl.store(output + row * output_stride + column, (x * scale * w).to(output.dtype.element_ty), mask=inside)


class TritonRmsnorm(TorchWorker):
    def load(self):
        return {**super().load(), "triton": triton.__version__}

    def prepare(self, scenario, tensors, shape_blob):
        # ks_rmsnorm_shape: header, dtype, columns, rows, the two strides, epsilon.
        columns, rows, input_stride, output_stride, epsilon = struct.unpack_from("<iqqqf", shape_blob, 12)
        if columns > WIDEST_ROW:
            raise Unsupported(f"rows of at most {WIDEST_ROW} columns")
        return self.try_out((columns, rows, input_stride, output_stride, epsilon), tensors)

    def bind_torch(self, prepared, t):
        columns, rows, input_stride, output_stride, epsilon = prepared
        block = triton.next_power_of_2(columns)
        warps = min(16, max(1, block // 512))

        def call():
            rmsnorm_kernel[(rows,)](t["input"], t["weight"], t["output"], columns, input_stride, output_stride, epsilon,
                                    block=block, num_warps=warps)

        return call


if __name__ == "__main__":
    TritonRmsnorm().serve()
