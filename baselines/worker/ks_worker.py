"""A worker in Python: the protocol of docs/formats/worker.md over descriptor 3, for baselines and candidates that live
in Python libraries. A baseline subclasses Worker and calls serve(); it gets tensors as numpy arrays (cpu) or as raw
device pointers with shapes (cuda), and never sees an answer.
"""

import ctypes
import json
import mmap
import os
import socket
import struct
import time

import numpy

DTYPES = {"fp32": numpy.float32, "fp16": numpy.float16, "bf16": numpy.uint16, "e4m3": numpy.uint8, "i32": numpy.int32}


class Unsupported(Exception):
    """Raised by Worker.prepare where this implementation cannot run a shape; the message says why."""


class Tensor:
    """One tensor of a set: name, dtype name, shape, strides in elements, and where it lies."""

    def __init__(self, declaration, buffer=None, offset=0, pointer=0):
        self.name = declaration["name"]
        self.dtype = declaration["dtype"]
        self.shape = declaration["shape"]
        self.strides = declaration["strides"]
        self.pointer = pointer + offset
        self._buffer, self._offset = buffer, offset

    def numpy(self):
        kind = numpy.dtype(DTYPES[self.dtype])
        return numpy.ndarray(self.shape, kind, self._buffer, self._offset, [s * kind.itemsize for s in self.strides])


class Worker:
    """Subclass this. `threads` and `device` are set before load() is called."""

    threads = 1
    device = "cpu"
    unwritten = ()  # outputs that this library does not give, e.g. ("lse",); prepare() may set it for its shape
    plans_lengths = False  # True: plan_lengths() may be called between bind() and the calls
    error_class = ""  # set by prepare() where the library rounds its query to a narrower type, e.g. "e4m3"

    def load(self):
        """Imports the library. Returns its versions as a dict."""
        return {}

    def prepare(self, scenario, tensors, shape_blob):
        """Gets ready for a shape, compiling what must be compiled. `tensors` are declarations by name. May raise
        Unsupported. What it returns is passed to bind()."""
        raise NotImplementedError

    def bind(self, prepared, tensors):
        """Gets ready for one set of buffers; returns a callable without arguments that makes one call."""
        raise NotImplementedError

    def planner(self, number):
        """With plans_lengths: a callable that prepares what depends on the lengths that lie in a set's buffers now."""
        raise NotImplementedError

    def block(self, calls, mode):
        """Makes the calls of one block, in "eager" or "graph" mode, and returns the device's own time for them in
        nanoseconds when all is done."""
        begin = time.monotonic_ns()
        for call in calls:
            call()
        return time.monotonic_ns() - begin

    def finish(self, sets):
        """After the timed block: moves results that the library allocates itself to where they belong."""

    def forget(self):
        """Lets go of everything that refers to the current buffers."""

    def serve(self):
        Loop(self).run()


class Loop:
    def __init__(self, worker):
        self.worker = worker
        self.socket = socket.socket(fileno=3)  # a sealed process may use this descriptor alone
        self.pending, self.fds = b"", []
        self.arenas, self.calls, self.prepared, self.tensors = [], [], None, []
        self.plans, self.both = [], []

    def receive(self):
        while b"\n" not in self.pending:
            data, fds, _, _ = socket.recv_fds(self.socket, 65536, 64)
            if not data:
                raise SystemExit(0)
            self.pending += data
            self.fds += list(fds)
        line, self.pending = self.pending.split(b"\n", 1)
        return json.loads(line)

    def run(self):
        while True:
            request = self.receive()
            try:
                answer = {"ok": True, **(getattr(self, "do_" + request["do"])(request) or {})}
            except SystemExit:
                raise
            except Exception as error:  # whatever a library throws becomes one sentence for the evaluator
                answer = {"ok": False, "error": f"{type(error).__name__}: {error}"[:2000]}
            self.send(json.dumps(answer).encode() + b"\n")

    def send(self, data):
        # sendmsg: a sealed process may use no other call to send.
        while data:
            data = data[self.socket.sendmsg([data]):]

    def do_load(self, request):
        self.worker.threads = request["threads"]
        self.worker.device = request["device"]
        self.worker.ordinal = request.get("ordinal", 0)
        return {"name": type(self.worker).__name__, "versions": self.worker.load(), "has_plan_lengths": self.worker.plans_lengths}

    def do_seal(self, request):
        try:
            library = ctypes.CDLL(os.environ["KERNELSEEK_SEAL_LIBRARY"])
        except (KeyError, OSError) as error:
            return {"protections": {"sandbox": f"not sealed: {error}"}}
        answer = ctypes.create_string_buffer(4096)
        library.ks_seal_process(answer, len(answer))
        return {"protections": json.loads(answer.value.decode())}

    def do_shape(self, request):
        start = time.monotonic_ns()
        self.tensors = request["tensors"]
        try:
            self.prepared = self.worker.prepare(request["scenario"], {t["name"]: t for t in self.tensors},
                                                bytes.fromhex(request["shape"]))
        except Unsupported as why:
            return {"supported": False, "reason": str(why)}
        return {"supported": True, "reason": "", "scratch_bytes": 0, "state_bytes": 0, "schedule_bytes": 0,
                "unwritten": list(self.worker.unwritten), "error_class": self.worker.error_class, "plan_ns": time.monotonic_ns() - start}

    def do_map(self, request):
        self.do_unmap_arenas()
        for arena in request["arenas"]:
            if "ipc" in arena:
                self.arenas.append((None, open_ipc(bytes.fromhex(arena["ipc"]))))
                continue
            fd = self.fds.pop(0)
            protection = mmap.PROT_READ | (mmap.PROT_WRITE if arena["writable"] else 0)
            self.arenas.append((mmap.mmap(fd, arena["bytes"], mmap.MAP_SHARED, protection), 0))
            os.close(fd)

    def do_sets(self, request):
        self.calls = []
        for one in request["sets"]:
            tensors = {}
            for declaration, (arena, offset) in zip(self.tensors, one["tensors"]):
                buffer, pointer = self.arenas[arena]
                tensors[declaration["name"]] = Tensor(declaration, buffer, offset, pointer)
            self.calls.append(self.worker.bind(self.prepared, tensors))
        self.make_phases()

    def do_lengths(self, request):
        return {"ns": self.worker.block([self.of_phase("plan")[request["set"]]], "eager")}

    def of_phase(self, phase):
        """The calls of the sets in a phase: the same objects each time, since graphs are kept by them."""
        return {"run": self.calls, "plan": self.plans, "both": self.both}[phase]

    def make_phases(self):
        self.plans = [self.worker.planner(i) for i in range(len(self.calls))] if self.worker.plans_lengths else []

        def both(plan, call):
            return lambda: (plan(), call())

        self.both = [both(plan, call) for plan, call in zip(self.plans, self.calls)]

    def do_run(self, request):
        begin = time.monotonic_ns()
        event_ns = self.run_block(request) if request["sets"] else 0
        end = time.monotonic_ns()
        if request.get("phase", "run") != "plan":
            self.worker.finish(request["sets"])
        return {"begin_ns": begin, "end_ns": end, "event_ns": event_ns, "status": 0}

    def run_block(self, request):
        calls = self.of_phase(request.get("phase", "run"))
        return self.worker.block([calls[i] for i in request["sets"]], request.get("mode", "eager"))

    def do_unmap_arenas(self):
        self.worker.forget()
        self.calls, self.plans, self.both = [], [], []
        for buffer, pointer in self.arenas:
            if buffer is None:
                close_ipc(pointer)
        self.arenas = []

    def do_unmap(self, request):
        self.do_unmap_arenas()

    def do_quit(self, request):
        raise SystemExit(0)


class _IpcHandle(ctypes.Structure):
    _fields_ = [("reserved", ctypes.c_char * 64)]


def _runtime():
    for name in ("libcudart.so.13", "libcudart.so.12", "libcudart.so"):
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise RuntimeError("no CUDA runtime library was found")


def open_ipc(handle):
    """Maps another process's device memory; returns its address."""
    opened = _IpcHandle()
    ctypes.memmove(ctypes.byref(opened), handle, 64)
    pointer = ctypes.c_void_p()
    status = _runtime().cudaIpcOpenMemHandle(ctypes.byref(pointer), opened, 1)
    if status != 0:
        raise RuntimeError(f"cudaIpcOpenMemHandle failed with {status}")
    return pointer.value


def close_ipc(pointer):
    _runtime().cudaIpcCloseMemHandle(ctypes.c_void_p(pointer))


class AttentionShape:
    """The SHAPE struct of abi/attention_fwd.h, read by name."""

    INTS = ("abi_version struct_bytes query_dtype kv_dtype output_dtype rows_layout kv_layout batch query_heads kv_heads "
            "key_dim value_dim max_rows max_keys").split()
    LONGS = "total_rows total_keys".split()
    MORE = ("page_size page_count page_table_stride latent_dim values_in_keys new_keys rotary_style rotary_dim "
            "has_leftpad window_left window_right has_sinks").split()

    def __init__(self, blob):
        first = struct.unpack_from("<14i", blob, 0)
        longs = struct.unpack_from("<2q", blob, 56)
        more = struct.unpack_from("<12i2f3i", blob, 72)
        for name, value in zip(self.INTS, first):
            setattr(self, name, value)
        for name, value in zip(self.LONGS, longs):
            setattr(self, name, value)
        for name, value in zip(self.MORE, more[:12]):
            setattr(self, name, value)
        self.scale, self.softcap = more[12], more[13]
        self.has_descale, self.descale_batch_stride, self.descale_head_stride = more[14:17]

    ROWS_DENSE, ROWS_PACKED = 0, 1
    KV_DENSE, KV_PACKED, KV_CACHE, KV_PAGED = 0, 1, 2, 3
    F32, F16, BF16, E4M3 = 1, 2, 3, 4
