"""`kernelseek mcp` with the protocol's own Python client, run by the interpreter of its environment."""
import json
import subprocess
import unittest

import bench


class McpTests(unittest.TestCase):
    build = None

    def setUp(self):
        if not bench.is_installed("mcp"):
            self.skipTest("the MCP client library: not installed; make clients")
        self.bench = bench.Bench(self.build)
        self.addCleanup(self.bench.close)

    def talk(self, what):
        """Has mcp_session.py do `what`; its last line is what it saw, as JSON."""
        python = bench.CLIENTS / "mcp" / "bin" / "python3"
        script = bench.ROOT / "tests" / "clients" / "mcp_session.py"
        done = subprocess.run([str(python), "-B", str(script), what, self.bench.kernelseek], cwd=self.bench.folder,
                              env=self.bench.environment({}), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return json.loads(done.stdout.strip().splitlines()[-1])

    def test_lists_five_tools_with_schemas_that_say_they_only_read(self):
        seen = self.talk("list")
        self.assertEqual(sorted(seen), ["ask", "disassemble", "evaluate", "history", "profile"])
        for tool in seen.values():
            self.assertEqual(tool["schema"]["type"], "object")
            self.assertTrue(tool["read_only"])

    def test_evaluate_tells_progress_and_gives_verdict_and_figures(self):
        seen = self.talk("evaluate")
        self.assertFalse(seen["is_error"], seen)
        self.assertIn("wrong", seen["text"])
        self.assertEqual(seen["structured"]["summary"]["correct"], 0)
        self.assertEqual(seen["structured"]["summary"]["total"], 1)

    def test_a_long_evaluation_tells_its_progress_and_a_cancelled_one_ends_its_process(self):
        seen = self.talk("cancel")
        self.assertGreaterEqual(len(seen["progress"]), 1)
        self.assertEqual(seen["progress"], sorted(set(seen["progress"])))
        self.assertEqual(seen["left"], [], "its processes are gone")
        self.assertIn("ks_run", seen["after"], "the server goes on")

    def test_failures_of_tools_are_results_and_wrong_arguments_are_errors(self):
        seen = self.talk("wrong")
        self.assertTrue(seen["missing_file"]["is_error"])
        self.assertIn("no/such", seen["missing_file"]["text"])
        self.assertTrue(seen["history"]["is_error"])
        self.assertIn("has no argument", seen["unknown_argument"])
