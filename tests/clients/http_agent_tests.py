"""The built-in agent from prompt to the judge's verdict, over each of the three wires, against the scripted model."""
import os
import re
import signal
import time
import unittest

import bench
from scripted_model import ScriptedModel

KEY = "sk-planted-0123456789abcdef0123"
EVALUATE = {"call": "evaluate", "with": {}}


def replace(old, new):
    return {"call": "edit", "with": {"path": "k.cpp", "old": old, "new": new}}


# Read, edit, evaluate, claim victory, be refused, edit, stop.
STORY = [{"say": "I look.", "do": [{"call": "read", "with": {"path": "k.cpp"}}, {"run": "wc -l k.cpp"}]},
         {"say": "I try.", "do": [replace(bench.START, bench.WORSE)]},
         {"say": "I have it judged.", "do": [EVALUATE]},
         {"say": "The goal is reached."},
         {"say": "Then this.", "do": [replace(bench.WORSE, bench.RIGHT)]},
         {"say": "Now it is right."}]


class HttpAgentTests(unittest.TestCase):
    build = None

    def setUp(self):
        self.bench = bench.Bench(self.build)
        self.addCleanup(self.bench.close)

    def run_story(self, wire, turns, more="", extra="", evaluations=8, questioner="none"):
        with ScriptedModel(turns) as model:
            self.bench.write_model(wire, model.url + ("" if wire == "messages" else "/v1"), more)
            self.bench.write_task("http", "scripted.toml:scripted", evaluations, extra, questioner)
            code, out = self.bench.run_task({"SCRIPTED_KEY": KEY})
        return model, code, out

    def check_story(self, wire):
        model, code, out = self.run_story(wire, STORY, questioner="bank" if wire == "chat" else "none")
        self.assertEqual(code, 0, out)
        self.assertIn("goal met", out)
        self.assertIn(bench.RIGHT, self.bench.candidate())
        decisions = [body["decision"] for body in self.bench.bodies("judge")]
        self.assertEqual(decisions, ["not_met", "met"], out)
        tools = [body["tool"] for body in self.bench.bodies("tool_call")]
        self.assertEqual(tools, ["read", "shell", "edit", "evaluate", "edit"])
        usage = self.bench.bodies("usage")
        self.assertEqual(len(usage), len(STORY))
        cost = (80 * 1000 + 20 * 100 + 10 * 2000) / 1e6  # what one answer of the script costs at these prices
        self.assertAlmostEqual(sum(body["cost_usd"] for body in usage), cost * len(STORY))
        code, page = self.bench.run(["report", str(self.bench.run_folder), "--out", str(self.bench.run_folder / "report.html")])
        self.assertEqual(code, 0, page)
        written = self.bench.everything_written()
        self.assertNotIn(KEY, written)
        self.assertIn("I have it judged.", written)
        self.assertTrue(all(KEY in str(request["headers"]) for request in model.requests), "the key was in use")

    def test_chat_completions_from_prompt_to_verdict(self):
        self.check_story("chat")

    def test_responses_from_prompt_to_verdict(self):
        self.check_story("responses")

    def test_messages_from_prompt_to_verdict(self):
        self.check_story("messages")

    def test_a_stream_cut_anywhere_makes_no_call_twice(self):
        events = {"chat": 7, "responses": 9, "messages": 11}  # of the stream, up to the one that makes the answer whole
        for wire, count_of_events in events.items():
            with self.subTest(wire):
                count = {"say": "I count.", "do": [{"run": "echo x >> count"}]}
                cuts = [{"cut": n} for n in range(count_of_events)]
                turns = [{**count, "faults": cuts}, {"say": "end"}]
                model, code, out = self.run_story(wire, turns, "attempts = 20")
                self.assertEqual((self.bench.run_folder / "work" / "count").read_text(), "x\n", out)
                self.assertGreaterEqual(len(model.main_requests()), count_of_events)
                self.bench.close()
                self.setUp()

    def test_rate_limits_errors_and_silence_are_waited_out(self):
        faults = [{"status": 429, "after": 1}, {"status": 500}, {"status": 529}, {"silent": 3}]
        model, code, out = self.run_story("messages", [{"say": "end", "faults": faults}], "silence_s = 1")
        self.assertGreaterEqual(len(model.main_requests()), 5, out)
        first, second = model.requests[0]["time"], model.requests[1]["time"]
        self.assertGreaterEqual(second - first, 1.0, "the server asked for a second")
        self.assertIn("rate_limit", [body.get("what") for body in self.bench.bodies("note")])
        self.assertIn("end", [body["text"] for body in self.bench.bodies("claim")])

    def test_a_refused_key_ends_the_run_with_the_providers_words_and_without_the_key(self):
        model, code, out = self.run_story("chat", [{"say": "end", "faults": [{"status": 401, "times": 0}]}])
        self.assertEqual(code, 3)
        self.assertIn("scripted answer 401", out)
        self.assertNotIn(KEY, out)
        self.assertEqual(len(model.requests), 1, "a wrong key is not tried again")

    def test_budgets_of_tokens_and_of_money_end_a_turn_that_would_go_on(self):
        endless = [{"say": "on", "do": [{"run": "true"}]}] * 60
        model, code, out = self.run_story("chat", endless, extra="tokens = 500")
        self.assertIn("(tokens)", out)
        self.assertLess(len(model.requests), 10)
        self.bench.close()
        self.setUp()
        model, code, out = self.run_story("responses", endless, extra="cost_usd = 0.5")
        self.assertIn("(cost)", out)
        self.assertLess(len(model.requests), 10)

    def test_a_helper_reports_back(self):
        turns = [{"say": "You do it.", "do": [{"call": "helper", "with": {"task": "count the lines of k.cpp"}}]},
                 {"say": "I count.", "do": [{"run": "wc -l < k.cpp"}]}, {"say": "It has lines."}, {"say": "end"}]
        model, code, out = self.run_story("messages", turns)
        sessions = {event["session"] for event in self.bench.events("tool_call")}
        self.assertEqual(sessions, {"main", "helper-1"}, out)
        self.assertIn("It has lines.", str(model.requests[3]["body"]["messages"][-1]))

    def test_disassemble_shows_machine_code_from_behind_the_walls(self):
        turns = [{"say": "I look.", "do": [{"call": "disassemble", "with": {}}]}, {"say": "end"}]
        self.run_story("chat", turns)
        result = self.bench.bodies("tool_result")[0]
        self.assertRegex(result["text"], r"ks_run|Disassembly", result["text"][:500])

    def test_a_killed_run_goes_on_where_it_was(self):
        turns = [{"say": "I count.", "do": [{"run": "echo x >> count"}]},
                 {"say": "I wait.", "do": [{"run": "sleep 300"}]}] + STORY[4:]
        turns[2] = {"say": "Now this.", "do": [replace(bench.START, bench.RIGHT)]}
        with ScriptedModel(turns) as model:
            self.bench.write_model("messages", model.url)
            self.bench.write_task("http", "scripted.toml:scripted")
            process = self.bench.start(["run", "task.toml", "--runs", "runs"], {"SCRIPTED_KEY": KEY})
            deadline = time.time() + 90
            while time.time() < deadline and len(model.main_requests()) < 2:
                time.sleep(0.1)
            time.sleep(0.5)
            os.kill(process.pid, signal.SIGKILL)
            process.communicate()
            code, out = self.bench.run(["run", "--resume", str(self.bench.run_folder)], {"SCRIPTED_KEY": KEY})
        self.assertEqual(code, 0, out)
        self.assertEqual((self.bench.run_folder / "work" / "count").read_text(), "x\n")
        self.assertIn("was not made again", str(model.requests[2]["body"]))
        self.assertIn("I count.", str(model.requests[2]["body"]), "the conversation goes on")

    def test_every_evaluated_version_can_be_got_back_by_the_agent(self):
        show = "git --git-dir=../versions.git show evaluation-0002:k.cpp | grep -c " + re.escape(bench.WORSE)
        turns = STORY[1:3] + [{"say": "I go back.", "do": [{"run": show}]}, {"say": "end"}]
        self.run_story("chat", turns)
        self.assertEqual(self.bench.bodies("tool_result")[-1]["text"].strip(), "1")
