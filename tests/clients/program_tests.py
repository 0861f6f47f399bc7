"""Real agent programs, each started by our driver with an empty environment and a HOME of its own, where there is nothing
but loopback, from prompt to the judge's verdict to the report; and what they are known to do wrong."""
import json
import os
import pathlib
import signal
import time
import unittest

import bench
from scripted_model import ScriptedModel

KEY = "sk-planted-0123456789abcdef0123"


def replace(old, new):
    return {"replace": ["k.cpp", old, new]}


def processes_with(text):
    """Processes whose command line holds a text (we are in a process namespace of our own)."""
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().decode("utf-8", "replace").replace("\0", " ")
            state = (folder / "stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            continue
        if text in words and state != "Z":
            found.append(words)
    return found


class ProgramCase(unittest.TestCase):
    build, why_not = None, ""
    agent = client = model = ""
    wire_path = "/v1"
    url_variable, key_variable = "OPENAI_BASE_URL", "OPENAI_API_KEY"
    toolless = False

    def setUp(self):
        if self.why_not:
            self.skipTest(f"{self.agent or 'agent programs'}: {self.why_not}")
        if not self.agent:
            self.skipTest("no program of its own")
        if not bench.is_installed(self.client):
            self.skipTest(f"{self.agent}: not installed; make clients")
        self.bench = bench.Bench(self.build)
        self.addCleanup(self.bench.close)

    def variables(self, model):
        return {self.url_variable: model.url + self.wire_path, self.key_variable: KEY}

    def play(self, turns, evaluations=8, extra="", more=None, questioner="none"):
        with ScriptedModel(turns, toolless=self.toolless) as model:
            self.bench.write_task(self.agent, self.model, evaluations, extra, questioner)
            code, out = self.bench.run_task({**self.variables(model), **(more or {})})
        return model, code, out

    def evaluate(self):
        return {"run": f"{self.bench.kernelseek} evaluate k.cpp"}

    def check_end(self, model, code, out):
        """The goal is met, the report is written, nothing leaked and nothing was left behind."""
        self.assertEqual(code, 0, out + "\n".join(request["played"] for request in model.requests))
        self.assertIn("goal met", out)
        self.assertIn(bench.RIGHT, self.bench.candidate())
        self.assertEqual(self.bench.bodies("judge")[-1]["decision"], "met")
        code, page = self.bench.run(["report", str(self.bench.run_folder), "--out", str(self.bench.run_folder / "report.html")])
        self.assertEqual(code, 0, page)
        self.assertIn("</html>", (self.bench.run_folder / "report.html").read_text())
        self.assertNotIn(KEY, self.bench.everything_written())
        self.assertTrue(any(KEY in str(request["headers"]) for request in model.requests), "the key was in use")
        self.assertEqual(list(self.bench.home.iterdir()), [], "the person's HOME is left alone")
        code, text = self.bench.run(["trace", "stats", str(self.bench.run_folder / "trace.jsonl"), "--json"])
        self.assertEqual(code, 0, text)
        json.loads(text)

    def check_failure(self, turns, words, more=None):
        """A program that only fails ends the run with its own words, whatever its exit code was."""
        model, code, out = self.play(turns, more=more)
        self.assertEqual(code, 3, out)
        self.assertIn("3 turns in a row did nothing", out)
        for word in words:
            self.assertIn(word, out)
        self.assertNotIn(KEY, self.bench.everything_written())

    def tokens(self):
        """Of all usage events, the last of each id: (input with what was cached, output)."""
        last = {}
        for body in self.bench.bodies("usage"):
            last[body.get("id") or len(last)] = body
        total = lambda *keys: sum(body.get(key) or 0 for body in last.values() for key in keys)
        return total("input_tokens", "cached_tokens"), total("output_tokens")


class CodexTests(ProgramCase):
    agent, client, model = "codex", "codex", "scripted"

    def story(self):
        return [{"say": "I look.", "do": [{"run": "cat k.cpp"}]},
                {"say": "I try.", "do": [replace(bench.START, bench.WORSE)]},
                {"say": "I have it judged.", "do": [self.evaluate()]},
                {"say": "The goal is reached."},
                {"say": "Then this.", "do": [replace(bench.WORSE, bench.RIGHT)]},
                {"say": "Now it is right."}]

    def test_from_prompt_to_verdict_to_report(self):
        model, code, out = self.play(self.story(), questioner="bank")
        self.check_end(model, code, out)
        self.assertEqual([body["decision"] for body in self.bench.bodies("judge")], ["not_met", "met"])
        refusal = self.bench.bodies("message")
        self.assertTrue(any(body.get("is_refusal") for body in refusal))
        self.assertIn("The goal is reached.", str(model.requests[4]["body"]["input"]), "the session was resumed, not begun anew")
        self.assertEqual(self.tokens(), (100 * 6, 10 * 6), "totals of a thread are not added up")
        rollouts = list((self.bench.run_folder / "agent" / "home" / ".codex" / "sessions").rglob("rollout-*.jsonl"))
        self.assertEqual(len(rollouts), 1, "its transcript lies in its own HOME")
        code, text = self.bench.run(["trace", "stats", str(rollouts[0]), "--json"])
        self.assertEqual(code, 0, text)

    def test_its_patch_tool_of_a_known_model(self):
        self.model = "gpt-5.5"
        patch = replace(self.bench.start_line, self.bench.right_line)  # it knows whole lines only
        model, code, out = self.play([{"say": "I mend it.", "do": [patch]}, {"say": "It is right."}])
        self.check_end(model, code, out)
        self.assertIn("edit", [body["kind"] for body in self.bench.bodies("tool_call")])

    def test_evaluations_through_the_mcp_server_are_the_runs(self):
        call = {"call": "evaluate", "server": "kernelseek", "with": {"changed": "nothing yet"}}
        ask = {"call": "history", "server": "kernelseek", "with": {}}
        turns = [{"say": "I have it judged.", "do": [call]}, {"say": "What was?", "do": [ask]},
                 {"say": "I mend it.", "do": [replace(bench.START, bench.RIGHT)]}, {"say": "It is right."}]
        model, code, out = self.play(turns)
        self.check_end(model, code, out)
        self.assertEqual([body["number"] for body in self.bench.bodies("evaluation")], [1, 2])
        self.assertIn("goal_state", json.dumps(model.requests[1]["body"]["input"][-1]), "the figures came back")
        self.assertIn("evaluations", json.dumps(model.requests[2]["body"]["input"][-1]))

    def test_a_rate_limit_and_a_cut_stream_are_gone_through(self):
        turns = [{"say": "I mend it.", "do": [replace(bench.START, bench.RIGHT)],
                  "faults": [{"status": 429, "after": 1}, {"cut": 2}, {"status": 500}]}, {"say": "It is right."}]
        model, code, out = self.play(turns)
        self.check_end(model, code, out)

    def test_a_refused_key_ends_the_run_with_a_reason(self):
        self.check_failure([{"say": "x", "faults": [{"status": 401, "times": 0}]}], [])

    def test_a_command_left_running_dies_with_its_turn(self):
        turns = [{"say": "I leave something.", "do": [{"run": "nohup sleep 9317 > /dev/null 2>&1 & echo left"}]},
                 {"say": "I mend it.", "do": [replace(bench.START, bench.RIGHT)]}, {"say": "It is right."}]
        model, code, out = self.play(turns)
        self.check_end(model, code, out)
        self.assertEqual(processes_with("sleep 9317"), [])

    def test_goes_on_after_the_run_was_killed(self):
        turns = [{"say": "I wait.", "do": [{"run": "sleep 9318"}]},
                 {"say": "I mend it.", "do": [replace(bench.START, bench.RIGHT)]}, {"say": "It is right."}]
        with ScriptedModel(turns) as model:
            self.bench.write_task(self.agent, self.model)
            process = self.bench.start(["run", "task.toml", "--runs", "runs"], self.variables(model))
            deadline = time.time() + 60
            while time.time() < deadline and not processes_with("sleep 9318"):
                time.sleep(0.1)
            os.kill(process.pid, signal.SIGKILL)
            process.communicate()
            deadline = time.time() + 10
            while time.time() < deadline and processes_with("sleep 9318"):
                time.sleep(0.1)
            self.assertEqual(processes_with("sleep 9318"), [], "nothing outlives the run")
            code, out = self.bench.run(["run", "--resume", str(self.bench.run_folder)], self.variables(model))
        self.check_end(model, code, out)

    def test_a_program_that_dies_is_started_again(self):
        turns = [{"say": "I die.", "do": [{"run": "kill -9 $(pgrep -x codex)"}]},
                 {"say": "I mend it.", "do": [replace(bench.START, bench.RIGHT)]}, {"say": "It is right."}]
        model, code, out = self.play(turns)
        self.check_end(model, code, out)


class MiniSweAgentTests(ProgramCase):
    agent, client, model = "mini-swe-agent", "mini-swe-agent", "openai/scripted"

    def test_from_prompt_to_verdict_to_report(self):
        turns = [{"say": "I look.", "do": [{"run": "cat k.cpp"}]},
                 {"say": "I try.", "do": [replace(bench.START, bench.WORSE)]},
                 {"say": "I have it judged.", "do": [self.evaluate()]},
                 {"submit": "The goal is reached."},
                 {"say": "Then this.", "do": [replace(bench.WORSE, bench.RIGHT)]},
                 {"submit": "Now it is right."}]
        model, code, out = self.play(turns)
        self.check_end(model, code, out)
        self.assertEqual([body["decision"] for body in self.bench.bodies("judge")], ["not_met", "met"])
        commands = [body["input"] for body in self.bench.bodies("tool_call")]
        self.assertEqual(len(commands), 6, "each call stands in the trace once")
        again = str(model.requests[4]["body"]["messages"])
        self.assertIn("not yet" if "not yet" in again else "not met", again, "the second start knows the judge's answer")

    def test_an_exit_without_work_is_a_failure(self):
        self.check_failure([{"say": "x", "faults": [{"status": 401, "times": 0}]}], [],
                           {"MSWEA_MODEL_RETRY_STOP_AFTER_ATTEMPT": "1"})


class ClaudeCodeTests(ProgramCase):
    agent, client, model = "claude-code", "claude-code", "scripted"
    wire_path, url_variable, key_variable = "", "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY"

    def test_from_prompt_to_verdict_to_report_with_the_stop_hook(self):
        turns = [{"say": "I look.", "do": [{"run": "cat k.cpp"}]},
                 {"say": "I try.", "do": [replace(bench.START, bench.WORSE)]},
                 {"say": "I have it judged.", "do": [self.evaluate()]},
                 {"say": "The goal is reached."},
                 {"say": "Then this.", "do": [replace(bench.WORSE, bench.RIGHT)]},
                 {"say": "Now it is right."}]
        model, code, out = self.play(turns)
        self.check_end(model, code, out)
        said = json.dumps(model.requests[4]["body"]["messages"])
        self.assertIn("Stop hook feedback", said, "the hook refused at once, from known figures")
        self.assertEqual([body["decision"] for body in self.bench.bodies("judge")], ["met"])

    def test_a_hook_that_goes_on_refusing_lets_go_and_the_driver_decides(self):
        turns = [{"say": "I have it judged.", "do": [self.evaluate()]}] + [{"say": "The goal is reached."}] * 30
        model, code, out = self.play(turns)
        self.assertEqual(code, 1, out)
        self.assertLess(len(model.requests), 32, "it did not go on for ever")
        self.assertEqual({body["decision"] for body in self.bench.bodies("judge")}, {"not_met"})

    def test_success_with_an_error_inside_is_a_failure(self):
        self.check_failure([{"say": "x", "faults": [{"status": 400, "times": 0}]}], [])

    def test_a_cut_after_a_whole_call_is_gone_through(self):
        turns = [{"say": "I mend it.", "do": [replace(bench.START, bench.RIGHT)], "faults": [{"cut": 3}, {"status": 529}]},
                 {"say": "It is right."}]
        model, code, out = self.play(turns)
        self.check_end(model, code, out)


class AiderTests(ProgramCase):
    agent, client, model, toolless = "aider", "aider", "openai/scripted", True

    def test_from_prompt_to_verdict_to_report(self):
        turns = [{"say": "I try.", "do": [replace(self.bench.start_line, self.bench.worse_line)]},
                 {"say": "Then this.", "do": [replace(self.bench.worse_line, self.bench.right_line)]}]
        model, code, out = self.play(turns)
        self.check_end(model, code, out)
        self.assertEqual([body["outcome"] for body in self.bench.bodies("evaluation")], ["judged"] * 3)

    def test_exit_code_0_after_a_refused_key_is_a_failure(self):
        self.check_failure([{"say": "x", "faults": [{"status": 401, "times": 0}]}], [])
