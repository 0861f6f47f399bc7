"""A model's HTTP server that plays a script, so that agent programs can be tested without a network and without a model.

It speaks OpenAI Responses (/responses), OpenAI Chat Completions (/chat/completions) and Anthropic Messages (/messages),
streamed or whole, as the request asks. A script is a list of turns, one for each request that offers tools (or for each
request at all, with `toolless=True`, for programs that have none):

    {"say": TEXT}                               text alone: the program's turn ends
    {"say": TEXT, "do": [ACTION, ...]}          text, then calls of tools
    {"submit": TEXT}                            ends the work of a program whose end is a shell command
    {..., "faults": [FAULT, ...]}               each is played once, before the turn itself

    ACTION   {"run": COMMAND}                   whichever shell the request offers
             {"replace": [FILE, OLD, NEW]}      whichever editor it offers; else sed in its shell; else an edit block in text
             {"call": TOOL, "with": {...}}      a tool by name, or by the end of its name after "__"; with "server": S the
                                                call names tool TOOL of MCP server S, offered or not
    FAULT    {"status": N, "after": S}          an error answer, with retry-after: S
             {"cut": N}                         the connection closes after N events of the stream; 0: before the header
             {"silent": S}                      the first event, then nothing for S seconds, then it closes
             "times": K                         K requests get it (0: every one, for ever)

Nothing here knows a program: what a call looks like follows from the tools that the request offers. Past its end the
script says "nothing more", and after forty such answers refuses, so that a program that cannot stop ends all the same.
"""
import http.server
import json
import re
import shlex
import threading
import time

SHELL_TOOLS = ["exec_command", "shell", "Bash", "bash", "run_shell_command"]
EDIT_TOOLS = ["apply_patch", "Edit", "edit"]
SUBMIT = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
MOST_SAYINGS_PAST_THE_END = 40


class ScriptError(Exception):
    """The script wants a tool that the request does not offer."""


class Tool:
    """A tool that a request offers."""

    def __init__(self, declared, space=""):
        inner = declared.get("function", declared)
        self.name = inner.get("name") or declared.get("type", "")
        self.space = space
        self.is_free_text = declared.get("type") == "custom"
        self.parameters = (inner.get("parameters") or inner.get("input_schema") or {}).get("properties", {})


class Call:
    """A call to make: a tool's name, its arguments (a dict, or text for free-text tools), and its namespace."""

    def __init__(self, name, arguments, space="", is_free_text=False):
        self.name, self.arguments, self.space, self.is_free_text = name, arguments, space, is_free_text

    def flat_name(self):
        return f"{self.space}__{self.name}" if self.space else self.name

    def text(self):
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments)


def offered_tools(body):
    """Every tool of a request, by full name."""
    tools = {}

    def take(declared, space=""):
        if declared.get("type") == "namespace":
            for inner in declared.get("tools", []):
                take(inner, declared["name"])
            return
        tool = Tool(declared, space)
        tools[f"{space}__{tool.name}" if space else tool.name] = tool

    for declared in body.get("tools") or []:
        take(declared)
    entries = body.get("input") if isinstance(body.get("input"), list) else []
    for entry in entries:
        for declared in entry.get("tools") or []:
            take(declared)
    return tools


def shell_call(command, tools):
    name = next((name for name in SHELL_TOOLS if name in tools), None)
    if name is None:
        raise ScriptError("no shell among: " + ", ".join(tools))
    known = tools[name].parameters
    arguments = {"cmd" if "cmd" in known else "command": command}
    if "description" in known:
        arguments["description"] = "a step of the script"
    return Call(name, arguments)


def patch_of(file, old, new):
    """The patch language of `apply_patch`."""
    lines = ["*** Begin Patch", f"*** Update File: {file}", "@@"]
    lines += ["-" + line for line in old.split("\n")] + ["+" + line for line in new.split("\n")]
    return "\n".join(lines + ["*** End Patch", ""])


def edit_block(file, old, new):
    """An edit as text, for programs that read it out of the answer."""
    return f"{file}\n```\n<<<<<<< SEARCH\n{old}\n=======\n{new}\n>>>>>>> REPLACE\n```\n"


def replace_call(file, old, new, tools):
    name = next((name for name in EDIT_TOOLS if name in tools), None)
    if name == "apply_patch":
        patch = patch_of(file, old, new)
        return Call(name, patch if tools[name].is_free_text else {"input": patch}, "", tools[name].is_free_text)
    if name is not None:
        known = tools[name].parameters
        where = "file_path" if "file_path" in known else "path"
        before, after = ("old_string", "new_string") if "old_string" in known else ("old", "new")
        return Call(name, {where: file, before: old, after: new})
    program = "import sys; f, a, b = sys.argv[1:]; t = open(f).read(); assert a in t; open(f, 'w').write(t.replace(a, b, 1))"
    return shell_call(" ".join(shlex.quote(word) for word in ["python3", "-c", program, file, old, new]), tools)


def calls_of(action, tools):
    if "run" in action:
        return shell_call(action["run"], tools)
    if "replace" in action:
        return replace_call(*action["replace"], tools)
    wanted = action["call"]
    for full, tool in tools.items():
        if full == wanted or full.endswith("__" + wanted):
            return Call(tool.name, action.get("with", {}), tool.space)
    if "server" in action:
        return Call(wanted, action.get("with", {}), "mcp__" + action["server"])
    raise ScriptError(f"no tool {wanted} among: " + ", ".join(tools))


class Answer:
    """What the model says: text, calls, and the tokens it claims."""

    def __init__(self, number, model, text, calls, usage):
        self.number, self.model, self.text, self.calls, self.usage = number, model, text, calls, usage

    def call_id(self, index):
        return f"call_{self.number}_{index}"

    def words(self):
        return re.findall(r"\s*\S+\s*", self.text) or ([self.text] if self.text else [])


# ---- the three wires: the whole answer, and the events of its stream as (name, object) ---------------------------------
def responses_items(answer):
    items = []
    if answer.text:
        items.append({"type": "message", "id": f"msg_{answer.number}", "role": "assistant", "status": "completed",
                      "content": [{"type": "output_text", "text": answer.text, "annotations": []}]})
    for i, call in enumerate(answer.calls):
        item = {"id": f"item_{answer.number}_{i}", "call_id": answer.call_id(i), "name": call.name, "status": "completed"}
        if call.is_free_text:
            item.update(type="custom_tool_call", input=call.text())
        else:
            item.update(type="function_call", arguments=call.text())
        if call.space:
            item["namespace"] = call.space
        items.append(item)
    return items


def responses_wire(answer):
    fresh, cached, out = answer.usage
    whole = {"id": f"resp_{answer.number}", "object": "response", "created_at": 1, "model": answer.model,
             "status": "completed", "output": responses_items(answer),
             "usage": {"input_tokens": fresh + cached, "input_tokens_details": {"cached_tokens": cached},
                       "output_tokens": out, "output_tokens_details": {"reasoning_tokens": 0},
                       "total_tokens": fresh + cached + out}}
    events = [{"type": "response.created", "response": {**whole, "status": "in_progress", "output": [], "usage": None}}]
    for i, item in enumerate(whole["output"]):
        blank = {"content": []} if item["type"] == "message" else {"arguments": ""} if "arguments" in item else {"input": ""}
        events.append({"type": "response.output_item.added", "output_index": i, "item": {**item, **blank, "status": "in_progress"}})
        if item["type"] == "message":
            events += [{"type": "response.output_text.delta", "item_id": item["id"], "output_index": i, "content_index": 0,
                        "delta": word} for word in answer.words()]
        if "arguments" in item:
            events.append({"type": "response.function_call_arguments.delta", "item_id": item["id"], "output_index": i,
                           "delta": item["arguments"]})
        events.append({"type": "response.output_item.done", "output_index": i, "item": item})
    events.append({"type": "response.completed", "response": whole})
    for number, event in enumerate(events):
        event["sequence_number"] = number
    return whole, [(event["type"], event) for event in events]


def chat_wire(answer):
    fresh, cached, out = answer.usage
    usage = {"prompt_tokens": fresh + cached, "completion_tokens": out, "total_tokens": fresh + cached + out,
             "prompt_tokens_details": {"cached_tokens": cached}}
    calls = [{"id": answer.call_id(i), "type": "function", "function": {"name": call.flat_name(), "arguments": call.text()}}
             for i, call in enumerate(answer.calls)]
    why = "tool_calls" if calls else "stop"
    head = {"id": f"chat_{answer.number}", "created": 1, "model": answer.model}
    message = {"role": "assistant", "content": answer.text}
    if calls:
        message["tool_calls"] = calls
    whole = {**head, "object": "chat.completion", "usage": usage,
             "choices": [{"index": 0, "message": message, "finish_reason": why}]}

    def chunk(delta, reason=None):
        return {**head, "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}

    events = [chunk({"role": "assistant", "content": ""})] + [chunk({"content": word}) for word in answer.words()]
    for i, call in enumerate(calls):
        function = call["function"]
        events.append(chunk({"tool_calls": [{**call, "index": i, "function": {"name": function["name"], "arguments": ""}}]}))
        half = len(function["arguments"]) // 2  # arguments come in pieces
        for piece in (function["arguments"][:half], function["arguments"][half:]):
            events.append(chunk({"tool_calls": [{"index": i, "function": {"arguments": piece}}]}))
    events.append(chunk({}, why))
    events.append({**head, "object": "chat.completion.chunk", "choices": [], "usage": usage})
    return whole, [("", event) for event in events] + [("", "[DONE]")]


def messages_wire(answer):
    fresh, cached, out = answer.usage
    usage = {"input_tokens": fresh, "cache_creation_input_tokens": 0, "cache_read_input_tokens": cached, "output_tokens": out}
    blocks = [{"type": "text", "text": answer.text}] if answer.text else []
    blocks += [{"type": "tool_use", "id": "toolu_" + answer.call_id(i), "name": call.flat_name(), "input": call.arguments}
               for i, call in enumerate(answer.calls)]
    why = "tool_use" if answer.calls else "end_turn"
    whole = {"id": f"msg_{answer.number}", "type": "message", "role": "assistant", "model": answer.model, "content": blocks,
             "stop_reason": why, "stop_sequence": None, "usage": usage}
    events = [{"type": "message_start", "message": {**whole, "content": [], "stop_reason": None,
                                                    "usage": {**usage, "output_tokens": 1}}}]
    for i, block in enumerate(blocks):
        if block["type"] == "text":
            blank, deltas = {"text": ""}, [{"type": "text_delta", "text": word} for word in answer.words()]
        else:
            text = json.dumps(block["input"])
            half = len(text) // 2
            blank, deltas = {"input": {}}, [{"type": "input_json_delta", "partial_json": part} for part in (text[:half], text[half:])]
        events.append({"type": "content_block_start", "index": i, "content_block": {**block, **blank}})
        events += [{"type": "content_block_delta", "index": i, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": i})
    events.append({"type": "message_delta", "delta": {"stop_reason": why, "stop_sequence": None}, "usage": {"output_tokens": out}})
    events.append({"type": "message_stop"})
    return whole, [(event["type"], event) for event in events]


WIRES = {"responses": responses_wire, "completions": chat_wire, "messages": messages_wire}


def error_body(path, status):
    message = f"scripted answer {status}"
    if path.endswith("messages"):
        kind = {401: "authentication_error", 429: "rate_limit_error", 529: "overloaded_error"}.get(status, "api_error")
        return {"type": "error", "error": {"type": kind, "message": message}}
    return {"error": {"type": "rate_limit_error" if status == 429 else "error", "message": message, "code": None}}


class ScriptedModel:
    """The server; a context manager. `requests` holds what came: dicts with path, headers, body and `played`."""

    def __init__(self, turns, toolless=False):
        self.turns = [dict(turn, faults=[dict(fault) for fault in turn.get("faults", [])]) for turn in turns]
        self.toolless = toolless
        self.requests = []
        self.at = self.past_end = self.answers = 0
        self.lock = threading.Lock()
        handler = type("BoundHandler", (Handler,), {"model": self})
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *_: None  # programs hang up when they are stopped
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def main_requests(self):
        """Those that got a turn of the script or a fault."""
        return [request for request in self.requests if request["played"].startswith(("turn", "fault"))]

    def play(self, body):
        """(what is played, turn, calls, fault) for a request; a fault uses up no turn."""
        tools = offered_tools(body)
        if not tools and not self.toolless:
            return "beside", {"say": "ok"}, [], None
        if self.at >= len(self.turns):
            self.past_end += 1
            return "past the end", {"say": "nothing more"}, [], {"status": 400} if self.past_end > MOST_SAYINGS_PAST_THE_END else None
        turn = self.turns[self.at]
        for fault in turn["faults"]:
            times = fault.setdefault("times", 1)
            if times >= 0:
                fault["times"] = times - 1 if times > 1 else -1 if times == 1 else 0
                return f"fault of turn {self.at}", *self.calls(turn, tools), fault
        self.at += 1
        return f"turn {self.at - 1}", *self.calls(turn, tools), None

    @staticmethod
    def calls(turn, tools):
        if "submit" in turn:
            return {"say": turn.get("say", "")}, [shell_call(f"{SUBMIT}; echo {shlex.quote(turn['submit'])}", tools)]
        if not tools:
            blocks = [edit_block(*action["replace"]) for action in turn.get("do", []) if "replace" in action]
            return {**turn, "say": "\n\n".join([turn.get("say", "")] + blocks)}, []
        return turn, [calls_of(action, tools) for action in turn.get("do", [])]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    model = None

    def log_message(self, *_):
        pass

    def read_body(self):
        if "chunked" in self.headers.get("transfer-encoding", ""):
            raw = b""
            while size := int(self.rfile.readline(), 16):
                raw += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            raw = self.rfile.read(int(self.headers.get("content-length", 0)))
        return json.loads(raw) if raw else {}

    def send_json(self, status, body, headers=None):
        raw = json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"content-type": "application/json", "content-length": len(raw), **(headers or {})}.items():
            self.send_header(name, str(value))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(raw)

    def hang_up(self):
        self.close_connection = True
        self.wfile.flush()
        self.connection.shutdown(2)

    def do_GET(self):
        models = {"object": "list", "models": [], "data": [{"id": "scripted", "object": "model", "owned_by": "tests"}]}
        is_models = self.path.split("?")[0].endswith("/models")
        self.send_json(200 if is_models else 404, models if is_models else error_body(self.path, 404))

    do_HEAD = do_GET

    def do_POST(self):
        path = self.path.split("?")[0].rstrip("/")
        wire = WIRES.get(path.rsplit("/", 1)[-1])
        body = self.read_body()
        request = {"path": self.path, "headers": dict(self.headers), "body": body, "played": "nothing", "time": time.time()}
        with self.model.lock:
            self.model.requests.append(request)
            if path.endswith("/count_tokens"):
                return self.send_json(200, {"input_tokens": 100})
            if wire is None:
                return self.send_json(404, error_body(path, 404))
            try:
                request["played"], turn, calls, fault = self.model.play(body)
            except ScriptError as error:
                request["played"] = f"script error: {error}"
                return self.send_json(400, {"error": {"message": str(error), "type": "error"}})
            self.model.answers += 1
            answer = Answer(self.model.answers, body.get("model", ""), turn.get("say", ""), calls, turn.get("usage", (80, 20, 10)))
        self.answer(path, body, wire, answer, fault)

    def answer(self, path, body, wire, answer, fault):
        if fault and "status" in fault:
            headers = {"retry-after": fault["after"]} if "after" in fault else {}
            return self.send_json(fault["status"], error_body(path, fault["status"]), headers)
        whole, events = wire(answer)
        if fault and fault.get("cut") == 0:
            return self.hang_up()
        if not body.get("stream"):
            return self.hang_up() if fault else self.send_json(200, whole)
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for number, (name, event) in enumerate(events):
            if fault and number == fault.get("cut", 1):
                time.sleep(fault.get("silent", 0))
                return self.hang_up()
            text = (f"event: {name}\n" if name else "") + f"data: {event if isinstance(event, str) else json.dumps(event)}\n\n"
            raw = text.encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(raw), raw))
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")
