"""Tensors of a worker as torch tensors without a copy, for baselines on a GPU."""

import sys

import torch

sys.path.insert(0, sys.path[0] + "/../worker")
from ks_worker import Worker  # noqa: E402

DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16, "e4m3": torch.float8_e4m3fn,
          "i32": torch.int32}
_RAW = {1: "|u1", 2: "<i2", 4: "<i4"}


class _Interface:
    def __init__(self, pointer, count, size):
        self.__cuda_array_interface__ = {"shape": (count,), "typestr": _RAW[size], "data": (pointer, False), "version": 3}


def as_torch(tensor):
    """The tensor of a worker's set, strides as declared."""
    dtype = DTYPES[tensor.dtype]
    size = torch.empty((), dtype=dtype).element_size()
    count = 1 + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.strides)) if all(tensor.shape) else 0
    if count == 0:
        return torch.empty(tensor.shape, dtype=dtype, device="cuda")
    flat = torch.as_tensor(_Interface(tensor.pointer, count, size), device="cuda").view(dtype)
    return flat.as_strided(tensor.shape, tensor.strides)


class TorchWorker(Worker):
    """A worker whose calls are PyTorch operations on one GPU: eager, or a graph captured once a list of calls."""

    def __init__(self):
        self.graphs = {}

    def load(self):
        torch.cuda.set_device(self.ordinal)
        self.stream = torch.cuda.Stream()
        return {"torch": torch.__version__}

    def block(self, calls, mode):
        with torch.cuda.stream(self.stream):
            graph = self.capture(calls) if mode == "graph" else None
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            if graph is not None:
                graph.replay()
            else:
                for call in calls:
                    call()
            end.record()
        torch.cuda.synchronize()
        return int(begin.elapsed_time(end) * 1e6)

    def capture(self, calls):
        key = tuple(id(call) for call in calls)
        if key not in self.graphs:
            calls[0]()  # lazy set-up of the library must not fall into the capture
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, stream=self.stream):
                for call in calls:
                    call()
            self.graphs[key] = graph
        return self.graphs[key]

    def forget(self):
        self.graphs.clear()
        torch.cuda.synchronize()
