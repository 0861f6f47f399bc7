"""Drives baselines/worker/ks_worker.py as the evaluator does: requests and descriptors over descriptor 3."""

import array
import json
import mmap
import os
import socket
import subprocess
import sys
import textwrap
import unittest

import numpy

WORKER = textwrap.dedent("""
    import sys
    sys.path.insert(0, "baselines/worker")
    from ks_worker import Unsupported, Worker

    class Doubler(Worker):
        plans_lengths = True

        def load(self):
            return {"doubler": "1"}

        def prepare(self, scenario, tensors, shape_blob):
            if scenario["name"] == "odd":
                raise Unsupported("no odd ones")
            self.unwritten, self.error_class = ("lse",), "e4m3"
            self.factors = {}
            return len(shape_blob)

        def bind(self, prepared, tensors):
            number = len(self.factors)
            self.factors[number] = 2
            def call():
                tensors["y"].numpy()[:] = self.factors[number] * tensors["x"].numpy()
            return call

        def planner(self, number):
            def plan():
                self.factors[number] = 10
            return plan

    Doubler().serve()
""")
TENSORS = [{"name": name, "dtype": "fp32", "shape": [4], "strides": [1], "bytes": 16, "slots": []} for name in ("x", "y")]


class Protocol(unittest.TestCase):
    def setUp(self):
        ours, theirs = socket.socketpair()
        os.set_inheritable(theirs.fileno(), True)
        self.child = subprocess.Popen(["sh", "-c", 'eval "exec \\"$0\\" -c \\"\\$1\\" 3<&$2"', sys.executable, WORKER, str(theirs.fileno())],
                                      close_fds=False)
        theirs.close()
        self.socket = ours
        self.ask(do="load", device="cpu", threads=1)

    def tearDown(self):
        self.socket.close()
        self.child.wait(10)

    def ask(self, fds=(), **request):
        data = json.dumps(request).encode() + b"\n"
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        self.socket.sendmsg([data], rights)
        answer = b""
        while not answer.endswith(b"\n"):
            piece = self.socket.recv(65536)
            self.assertTrue(piece, "the worker ended")
            answer += piece
        return json.loads(answer)

    def map_sets(self):
        fds = [os.memfd_create(name) for name in ("in", "out")]
        for fd in fds:
            os.ftruncate(fd, 4096)
        self.maps = [numpy.frombuffer(mmap.mmap(fd, 4096), numpy.float32) for fd in fds]
        self.ask(fds=fds, do="map", arenas=[{"bytes": 4096, "writable": False}, {"bytes": 4096, "writable": True}])
        for fd in fds:
            os.close(fd)
        self.ask(do="sets", sets=[{"tensors": [[0, 0], [1, 0]]}, {"tensors": [[0, 256], [1, 256]]}])

    def test_says_what_it_is_and_what_it_lacks(self):
        shape = self.ask(do="shape", scenario={"name": "even"}, shape="00ff", tensors=TENSORS)
        self.assertTrue(shape["supported"])
        self.assertEqual((shape["unwritten"], shape["error_class"]), (["lse"], "e4m3"))
        refused = self.ask(do="shape", scenario={"name": "odd"}, shape="00", tensors=TENSORS)
        self.assertEqual((refused["ok"], refused["supported"], refused["reason"]), (True, False, "no odd ones"))

    def test_runs_sets_in_order_and_plans_where_it_is_asked(self):
        self.ask(do="shape", scenario={"name": "even"}, shape="00", tensors=TENSORS)
        self.map_sets()
        given, got = self.maps
        given[:4], given[64:68] = 1, 2
        self.assertEqual(self.ask(do="run", sets=[0, 1], mode="eager")["status"], 0)
        self.assertEqual((got[0], got[64]), (2, 4))
        self.ask(do="run", sets=[1], mode="eager", phase="plan")
        self.assertEqual(got[64], 4)  # planning alone writes nothing
        self.ask(do="run", sets=[0], mode="eager", phase="both")
        self.assertEqual(got[0], 10)
        self.ask(do="run", sets=[1], mode="eager")
        self.assertEqual(got[64], 20)

    def test_an_error_is_an_answer(self):
        answer = self.ask(do="run", sets=[7], mode="eager")
        self.assertFalse(answer["ok"])
        self.assertIn("IndexError", answer["error"])
        self.assertFalse(self.ask(do="nothing")["ok"])
        self.assertTrue(self.ask(do="unmap")["ok"])


if __name__ == "__main__":
    unittest.main()
