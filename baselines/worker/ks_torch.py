"""Tensors of a worker as torch tensors without a copy, for baselines on a GPU."""

import os
import sys

import torch

sys.path.insert(0, sys.path[0] + "/../worker")
from ks_worker import Unsupported, Worker  # noqa: E402

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


def blank(declaration):
    """A tensor as declared, of zeros, in memory of our own: what a shape is tried out on before there are buffers."""
    dtype, shape, strides = DTYPES[declaration["dtype"]], declaration["shape"], declaration["strides"]
    count = 1 + sum((n - 1) * s for n, s in zip(shape, strides)) if all(shape) else 0
    flat = torch.zeros(count * torch.empty((), dtype=dtype).element_size(), dtype=torch.uint8, device="cuda").view(dtype)
    return flat.as_strided(shape, strides) if count else flat.reshape(shape)


def leave_if_broken():
    """Ends the process where an error of the GPU stays: the evaluator then starts a fresh one."""
    try:
        torch.cuda.synchronize()
    except RuntimeError as error:
        print(error, file=sys.stderr)
        os._exit(3)


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

    def try_out(self, prepared, declarations):
        """Makes one call on tensors of zeros: a library that refuses a shape only when it is called is heard here, and
        what it compiles or loads at first use falls outside every timing."""
        tensors = {name: blank(declaration) for name, declaration in declarations.items()}
        with torch.cuda.stream(self.stream):
            try:
                self.bind_torch(prepared, tensors)()
                torch.cuda.synchronize()
            except (RuntimeError, NotImplementedError, TypeError, ValueError, AssertionError) as error:
                leave_if_broken()
                text = str(error).strip().splitlines()
                raise Unsupported(f"the library refuses: {(text[0] if text else type(error).__name__)[:300]}") from error
            finally:
                self.forget()
        return prepared

    def bind(self, prepared, tensors):
        return self.bind_torch(prepared, {name: as_torch(tensor) for name, tensor in tensors.items()})

    def bind_torch(self, prepared, tensors):
        """As bind(), with torch tensors by name."""
        raise NotImplementedError

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


class ResultsElsewhere(TorchWorker):
    """For libraries that allocate (some of) their results: a call leaves [(from, to)] pairs of tensors under its number,
    and they are moved after the timed block, which is no part of the library's work."""

    def __init__(self):
        super().__init__()
        self.results = []

    def keep(self, call):
        """A timed call from one that returns its pairs."""
        number = len(self.results)
        self.results.append([])

        def timed():
            self.results[number] = call()

        return timed

    def finish(self, sets):
        for number in sets:
            for source, target in self.results[number]:
                target.copy_(source)
        torch.cuda.synchronize()

    def forget(self):
        super().forget()
        self.results.clear()
