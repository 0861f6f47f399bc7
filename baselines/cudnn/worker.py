"""Baseline: cuDNN 9's attention through cudnn-frontend's graphs: dense, causal (bottom-right), windows, caches, pages,
packed rows as ragged tensors, sinks.

A graph is planned once per shape and kept; outputs and LSE go straight into the evaluator's buffers where their layout
allows it. What a ragged call needs of the cumulative lengths (offsets in elements, lengths) is computed in the timed
call, by four small kernels, as a caller who gets cumulative lengths must. fp8 attention of cuDNN scales and rounds
its output and takes no descale per head: it is another operation, and is not called.
"""

import os
import sys

import torch

sys.path.insert(0, sys.path[0] + "/../worker")
from ks_torch import ResultsElsewhere  # noqa: E402
from ks_worker import AttentionShape, Unsupported  # noqa: E402

UIDS = {name: 1 + i for i, name in enumerate(
    "query key value output stats rows keys key_table value_table sinks query_offset key_offset value_offset output_offset "
    "stats_offset".split())}


class Plan:
    """A built graph with its workspace, and the shape it is for."""

    def __init__(self, shape, graph, workspace):
        self.shape, self.graph, self.workspace = shape, graph, workspace


class Cudnn(ResultsElsewhere):
    def __init__(self, folder):
        super().__init__()
        self.folder, self.plans = folder, {}

    def load(self):
        sys.path.insert(0, self.folder)
        global cudnn
        import cudnn

        versions = super().load()
        with torch.cuda.stream(self.stream):
            self.handle = cudnn.create_handle()
            cudnn.set_stream(handle=self.handle, stream=self.stream.cuda_stream)
        return {**versions, "cudnn": cudnn.backend_version_string(), "cudnn_frontend": cudnn.__version__}

    def prepare(self, scenario, tensors, shape_blob):
        s = AttentionShape(shape_blob)
        if s.query_dtype not in (s.F16, s.BF16) or s.kv_dtype != s.query_dtype:
            raise Unsupported("fp16 and bf16 only, query and keys alike")
        if s.softcap:
            raise Unsupported("no softcap")
        if s.new_keys or s.has_leftpad:
            raise Unsupported("appends no keys, and has no left padding")
        if s.latent_dim:
            raise Unsupported("no latent queries")
        ragged = s.rows_layout == s.ROWS_PACKED or s.kv_layout == s.KV_PACKED
        if ragged and s.kv_layout != s.KV_PACKED:
            raise Unsupported("packed rows go with packed keys only: pages cannot be combined with ragged tensors")
        self.unwritten = ()
        if shape_blob not in self.plans:
            self.plans = {shape_blob: self.build(s, tensors)}
        return self.try_out(self.plans[shape_blob], tensors)

    def build(self, s, declared):
        ragged = s.rows_layout == s.ROWS_PACKED
        dtype = {s.F16: cudnn.data_type.HALF, s.BF16: cudnn.data_type.BFLOAT16}[s.query_dtype]
        graph = cudnn.pygraph(io_data_type=dtype, intermediate_data_type=cudnn.data_type.FLOAT,
                              compute_data_type=cudnn.data_type.FLOAT, handle=self.handle)

        def small(name, dim, kind=cudnn.data_type.INT32):
            strides = [1] * len(dim)
            for i in range(len(dim) - 2, -1, -1):
                strides[i] = strides[i + 1] * dim[i + 1]
            return graph.tensor(name=name, dim=dim, stride=strides, data_type=kind, uid=UIDS[name])

        def offsets(name):
            return small(name + "_offset", [s.batch + 1, 1, 1, 1]) if ragged else None

        def tensor(name, heads, rows, columns):
            """[batch, heads, rows, columns] as cuDNN counts, over the declared strides."""
            strides = declared[name]["strides"]
            batch, row, head = (rows * strides[0], strides[0], strides[1]) if ragged else strides[:3]
            return graph.tensor(name=name, dim=[s.batch, heads, rows, columns], stride=[batch, head, row, 1], data_type=dtype,
                                uid=UIDS[name], ragged_offset=offsets(name))

        query = tensor("query", s.query_heads, s.max_rows, s.key_dim)
        options = {}
        if s.kv_layout == s.KV_PAGED:
            def container(name, columns):
                strides = declared[name]["strides"]
                return graph.tensor(name=name, dim=[s.page_count, s.kv_heads, s.page_size, columns],
                                    stride=[strides[0], strides[2], strides[1], 1], data_type=dtype, uid=UIDS[name])

            key, value = container("key", s.key_dim), container("value", s.value_dim)
            pages = s.page_table_stride
            options.update(paged_attention_k_table=small("key_table", [s.batch, 1, pages, 1]),
                           paged_attention_v_table=small("value_table", [s.batch, 1, pages, 1]),
                           paged_attention_max_seq_len_kv=s.max_keys)
        else:
            key = tensor("key", s.kv_heads, s.max_keys, s.key_dim)
            value = tensor("value", s.kv_heads, s.max_keys, s.value_dim)
        if ragged or s.kv_layout in (s.KV_PAGED, s.KV_CACHE):
            options.update(use_padding_mask=True, seq_len_q=small("rows", [s.batch, 1, 1, 1]),
                           seq_len_kv=small("keys", [s.batch, 1, 1, 1]))
        # One row sees every key: no mask. Otherwise the diagonal ends at the last row's last key.
        if s.window_right >= 0 and not (s.max_rows == 1 and s.window_right == 0):
            options["diagonal_band_right_bound"] = s.window_right
        if 0 <= s.window_left < s.max_keys - 1:
            options["diagonal_band_left_bound"] = s.window_left + 1
        if "diagonal_band_right_bound" in options or "diagonal_band_left_bound" in options:
            same = s.max_rows == s.max_keys and not ragged and s.kv_layout == s.KV_DENSE
            options["diagonal_alignment"] = cudnn.diagonal_alignment.TOP_LEFT if same else cudnn.diagonal_alignment.BOTTOM_RIGHT
        if s.has_sinks:
            options["sink_token"] = small("sinks", [1, s.query_heads, 1, 1], cudnn.data_type.FLOAT)
        output, stats = graph.sdpa(q=query, k=key, v=value, attn_scale=s.scale, generate_stats=True, name="attention", **options)
        strides = declared["output"]["strides"]
        batch, row, head = (s.max_rows * strides[0], strides[0], strides[1]) if ragged else strides[:3]
        output.set_output(True).set_uid(UIDS["output"]).set_dim([s.batch, s.query_heads, s.max_rows, s.value_dim])
        output.set_stride([batch, head, row, 1]).set_data_type(dtype)
        stats.set_output(True).set_uid(UIDS["stats"]).set_data_type(cudnn.data_type.FLOAT)
        stats.set_dim([s.batch, s.query_heads, s.max_rows, 1])
        if ragged:
            output.set_ragged_offset(offsets("output"))
            stats.set_stride([s.max_rows * s.query_heads, 1, s.query_heads, 1]).set_ragged_offset(offsets("stats"))
        else:
            stats.set_stride([s.query_heads * s.max_rows, s.max_rows, 1, 1])
        try:
            graph.validate()
            graph.build_operation_graph()
            graph.create_execution_plans([cudnn.heur_mode.A, cudnn.heur_mode.FALLBACK])
            graph.check_support()
            graph.build_plans()
        except Exception as error:  # whatever a library says of a shape that it has no plan for
            raise Unsupported(f"cuDNN has no plan: {str(error).strip().splitlines()[0][:250] if str(error).strip() else type(error).__name__}") from error
        return Plan(s, graph, torch.empty(max(1, graph.get_workspace_size()), dtype=torch.uint8, device="cuda"))

    def bind_torch(self, plan, t):
        s = plan.shape
        pack = {UIDS[name]: t[name] for name in ("query", "key", "value", "output")}
        before = []
        if s.rows_layout == s.ROWS_PACKED:
            stats = torch.empty(s.total_rows, s.query_heads, dtype=torch.float32, device="cuda")
            result = [(stats, t["lse"].squeeze(-1))]
            before.append(self.ragged_inputs(s, t, pack))
        else:
            # Ours lies by heads, as cuDNN's does.
            stats, result = t["lse"], []
            if s.kv_layout in (s.KV_PAGED, s.KV_CACHE):
                pack[UIDS["rows"]] = torch.full((s.batch,), s.max_rows, dtype=torch.int32, device="cuda")
                pack[UIDS["keys"]] = t["key_lengths"]
            if s.kv_layout == s.KV_PAGED:
                pack[UIDS["key_table"]] = pack[UIDS["value_table"]] = t["page_table"]
        pack[UIDS["stats"]] = stats
        if s.has_sinks:
            sinks = torch.empty(s.query_heads, dtype=torch.float32, device="cuda")
            pack[UIDS["sinks"]] = sinks
            before.append(lambda: sinks.copy_(t["sinks"]))
        pointers = {uid: tensor.data_ptr() for uid, tensor in pack.items()}
        execute, workspace, handle = plan.graph.execute, plan.workspace, self.handle

        def call():
            for step in before:
                step()
            execute(pointers, workspace, handle=handle)
            return result

        timed = self.keep(call)
        timed.kept_alive = pack
        return timed

    @staticmethod
    def ragged_inputs(s, t, pack):
        """Offsets in elements and lengths, from the cumulative lengths: computed in each call."""
        of_query, of_key = s.query_heads * s.key_dim, s.kv_heads * s.key_dim
        of_value, of_output, of_stats = s.kv_heads * s.value_dim, s.query_heads * s.value_dim, s.query_heads
        if max(s.total_rows * max(of_query, of_output), s.total_keys * max(of_key, of_value)) >= 2**31:
            raise Unsupported("offsets of ragged tensors past 2^31")
        integers = lambda *shape: torch.empty(shape, dtype=torch.int32, device="cuda")  # noqa: E731
        row_offsets, key_offsets = integers(3, s.batch + 1), integers(2, s.batch + 1)
        row_counts, key_counts = integers(s.batch), integers(s.batch)
        row_sizes = torch.tensor([[of_query], [of_output], [of_stats]], dtype=torch.int32, device="cuda")
        key_sizes = torch.tensor([[of_key], [of_value]], dtype=torch.int32, device="cuda")
        for name, offsets in zip(("query", "output", "stats", "key", "value"), (*row_offsets, *key_offsets)):
            pack[UIDS[name + "_offset"]] = offsets
        pack[UIDS["rows"]], pack[UIDS["keys"]] = row_counts, key_counts
        cu_rows, cu_keys = t["cu_rows"], t["cu_keys"]

        def compute():
            torch.mul(cu_rows, row_sizes, out=row_offsets)
            torch.mul(cu_keys, key_sizes, out=key_offsets)
            torch.sub(cu_rows[1:], cu_rows[:-1], out=row_counts)
            torch.sub(cu_keys[1:], cu_keys[:-1], out=key_counts)

        return compute


if __name__ == "__main__":
    Cudnn(sys.argv[1]).serve()
