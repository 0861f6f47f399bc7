"""Baseline: ONNX Runtime's fused MultiHeadAttention on the CPU, as shipped."""

import sys

import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper

sys.path.insert(0, sys.path[0] + "/../worker")
from ks_worker import AttentionShape, Unsupported, Worker  # noqa: E402


class OnnxRuntime(Worker):
    unwritten = ("lse",)

    def load(self):
        return {"onnxruntime": onnxruntime.__version__, "numpy": numpy.__version__}

    def prepare(self, scenario, tensors, shape_blob):
        s = AttentionShape(shape_blob)
        if s.query_dtype != s.F32 or s.kv_dtype != s.F32:
            raise Unsupported("fp32 only on the CPU")
        if s.rows_layout != s.ROWS_DENSE or s.kv_layout != s.KV_DENSE:
            raise Unsupported("dense tensors only")
        if s.query_heads != s.kv_heads:
            raise Unsupported("no grouped heads")
        if s.softcap or s.has_sinks or s.new_keys or s.latent_dim or s.window_left >= 0 or s.window_right > 0:
            raise Unsupported("no windows, softcap, sinks, appended keys or latent queries")
        if s.window_right == 0 and s.max_rows != s.max_keys:
            raise Unsupported("causal only with as many rows as keys")
        return self.session(s)

    def session(self, s):
        node = helper.make_node("MultiHeadAttention", ["query", "key", "value"], ["output"], domain="com.microsoft",
                                num_heads=s.query_heads, scale=s.scale, unidirectional=int(s.window_right == 0))
        sizes = {"query": (s.max_rows, s.query_heads * s.key_dim), "key": (s.max_keys, s.kv_heads * s.key_dim),
                 "value": (s.max_keys, s.kv_heads * s.value_dim), "output": (s.max_rows, s.query_heads * s.value_dim)}
        info = {name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [s.batch, *size]) for name, size in sizes.items()}
        graph = helper.make_graph([node], "attention", [info["query"], info["key"], info["value"]], [info["output"]])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)],
                                  ir_version=8)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = self.threads
        options.inter_op_num_threads = 1
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return session, {name: (s.batch, *size) for name, size in sizes.items()}

    def bind(self, prepared, tensors):
        session, sizes = prepared
        binding = session.io_binding()
        for name in ("query", "key", "value"):
            array = tensors[name].numpy().reshape(sizes[name])
            binding.bind_input(name, "cpu", 0, numpy.float32, sizes[name], array.ctypes.data)
        output = tensors["output"].numpy()
        binding.bind_output("output", "cpu", 0, numpy.float32, sizes["output"], output.ctypes.data)
        return lambda: session.run_with_iobinding(binding)


if __name__ == "__main__":
    OnnxRuntime().serve()
