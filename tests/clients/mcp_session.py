"""Talks to `kernelseek mcp` through the official client: mcp_session.py WHAT KERNELSEEK; prints what it saw as JSON."""
import asyncio
import json
import pathlib
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

WHAT, KERNELSEEK = sys.argv[1], sys.argv[2]


def seen(result):
    structured = getattr(result, "structuredContent", None) or getattr(result, "structured_content", None)
    is_error = getattr(result, "isError", None)
    if is_error is None:
        is_error = getattr(result, "is_error", False)
    return {"text": "".join(part.text for part in result.content), "is_error": bool(is_error), "structured": structured}


async def list_tools(session):
    found = {}
    for tool in (await session.list_tools()).tools:
        described = tool.model_dump(by_alias=True)
        found[tool.name] = {"schema": described["inputSchema"], "read_only": described["annotations"]["readOnlyHint"]}
    return found


async def evaluate(session):
    arguments = {"candidate": "k.cpp", "grid": "demo", "filter": "llama8b_b8", "baselines": ["none"], "check_only": True}
    return seen(await session.call_tool("evaluate", arguments))


def evaluations_at_work():
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")
            state = (folder / "stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            continue
        if state != "Z" and len(words) > 2 and words[0] == KERNELSEEK and words[1] == "evaluate":
            found.append(words)
    return found


async def cancel(session):
    progress = []

    async def note(value, total=None, message=None):
        progress.append(value)

    arguments = {"candidate": "rival.cpp", "grid": "demo", "baselines": ["candidate:rival.cpp"], "seconds": 60}
    try:
        await asyncio.wait_for(session.call_tool("evaluate", arguments, progress_callback=note), 6)
    except (asyncio.TimeoutError, TimeoutError):
        pass
    await asyncio.sleep(1.5)
    left = evaluations_at_work()
    after = seen(await session.call_tool("disassemble", {"candidate": "k.cpp"}))
    return {"progress": progress, "left": left, "after": "ks_run" if "ks_run" in after["text"] else after["text"][:300]}


async def wrong(session):
    missing = seen(await session.call_tool("evaluate", {"candidate": "no/such.cpp"}))
    history = seen(await session.call_tool("history", {}))
    try:
        unknown = seen(await session.call_tool("history", {"rum": "x"}))["text"]
    except Exception as error:
        unknown = str(error)
    return {"missing_file": missing, "history": history, "unknown_argument": unknown}


async def main():
    server = StdioServerParameters(command=KERNELSEEK, args=["mcp"])
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        print(json.dumps(await {"list": list_tools, "evaluate": evaluate, "cancel": cancel, "wrong": wrong}[WHAT](session)))


asyncio.run(main())
