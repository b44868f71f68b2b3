"""MCP servers with one particular, mostly bad, behaviour: ``raw.py BEHAVIOUR``.

They implement JSON-RPC over stdio themselves, because the SDK would prevent the bad behaviour.
"""

import json
import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Request = dict[str, Any]
LONG = 600  # seconds, longer than any test


def tool(name: str, **more: object) -> dict[str, object]:
    """A valid tool with further fields."""
    return {"name": name, "description": f"Does {name}.", "inputSchema": {"type": "object"}, **more}


def send(message: object) -> None:
    """Write a message with a single call of ``print``, so that threads do not mix their lines."""
    print(f"{json.dumps(message)}\n", end="", flush=True)


def reply(request: Request, result: object) -> None:
    """Answer a request."""
    send({"jsonrpc": "2.0", "id": request["id"], "result": result})


def refuse(request: Request, code: int, message: str, data: object = None) -> None:
    """Answer a request with an error."""
    error = {"code": code, "message": message, "data": data}
    send({"jsonrpc": "2.0", "id": request["id"], "error": error})


def serve(list_tools: Callable[[Request], None], **capabilities: object) -> None:
    """Answer the handshake, then pass every tools/list request to a function."""
    for line in sys.stdin:
        request = json.loads(line)
        match request.get("method"):
            case "initialize":
                greeting = {
                    "protocolVersion": "2025-06-18",
                    "capabilities": capabilities,
                    "serverInfo": {"name": "raw", "version": "1"},
                }
                reply(request, greeting)
            case "tools/list":
                list_tools(request)
            case _ if "id" in request:
                refuse(request, -32601, "Method not found")


def serve_page(*tools: object, cursor: str | None = None) -> None:
    """Answer every tools/list request with the same page."""
    page = {"tools": tools, **({"nextCursor": cursor} if cursor else {})}
    serve(lambda request: reply(request, page), tools={})


def reporting() -> None:
    """List the words in the file TOOLS and report their changes; log each start to STARTS.

    This behaves like ``changing.py``, but starts faster because it does not import the SDK.
    """
    file = Path(os.environ["TOOLS"])
    with Path(os.environ["STARTS"]).open("a") as starts:
        starts.write(f"{os.getpid()}\n")
    listed = file.read_text()

    def list_tools(request: Request) -> None:
        reply(request, {"tools": [tool(name) for name in file.read_text().split()]})

    def report() -> None:
        reported = listed
        while True:
            time.sleep(0.02)
            if (text := file.read_text()) != reported:
                reported = text
                send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})

    threading.Thread(target=report, daemon=True).start()
    serve(list_tools, tools={"listChanged": True})


def paginated() -> None:
    """List six tools in three pages."""

    def page(request: Request) -> None:
        start = int((request.get("params") or {}).get("cursor", "0"))
        more = {"nextCursor": str(start + 2)} if start < 4 else {}
        reply(request, {"tools": [tool(f"t{start}"), tool(f"t{start + 1}")], **more})

    serve(page, tools={})


def endless() -> None:
    """List an endless sequence of empty pages."""
    pages = iter(range(10**9))
    serve(lambda request: reply(request, {"tools": [], "nextCursor": f"p{next(pages)}"}), tools={})


def same_page() -> None:
    """Ignore cursors and return the same page, with a next cursor, every time."""
    serve_page(tool("only"), cursor="next")


def many() -> None:
    """List more tools than the limit."""
    serve_page(*(tool(f"tool_{number}") for number in range(10_005)))


def objects() -> None:
    """List a tool of a few megabytes that takes gigabytes of memory when it is parsed."""
    serve_page(tool("large", extra=[{}] * 1_000_001))


def bad_tools() -> None:
    """List two valid tools among invalid ones."""
    serve_page(
        tool("good"),
        {"name": "no_schema"},
        tool("null_schema", inputSchema=None),
        tool("wrong_schema", inputSchema={"type": "no such type"}),
        {"description": "no name", "inputSchema": {"type": "object"}},
        "not even an object",
        tool("also_good"),
    )


UNREADABLE = {
    "an escape": '{"name": "bad", "description": "\\ud8"}',
    "a number": '{"name": "bad", "x": ' + "1" * 5_000 + "}",
    "nesting": '{"name": "bad", "x": ' + "[" * 300 + "]" * 300 + "}",
}


def unreadable_tools() -> None:
    """List two valid tools around one that a strict parser rejects."""
    first, last = json.dumps(tool("good")), json.dumps(tool("also_good"))
    tools = f"[{first}, {UNREADABLE[os.environ['DEFECT']]}, {last}]"

    def answer(request: Request) -> None:
        head = f'{{"jsonrpc": "2.0", "id": {request["id"]}, "result": '
        print(head + f'{{"tools": {tools}}}}}', flush=True)

    serve(answer, tools={})


def unreadable_answer() -> None:
    """Answer tools/list with a truncated message, and send nothing more."""
    head = '{{"jsonrpc": "2.0", "id": {}, "result": {{"tools": ['
    serve(lambda request: print(head.format(request["id"]), flush=True), tools={})


def control_characters() -> None:
    """List a tool whose description contains terminal control characters."""
    serve_page(tool("paint", description="Paints \x1b[31mred\x1b[0m\x07 walls.\x00"))


def only_prompts() -> None:
    """Offer prompts and no tools."""
    serve(lambda request: refuse(request, -32601, "Method not found"), prompts={})


def fails() -> None:
    """Announce tools, but answer tools/list with an error that repeats the token."""
    serve(lambda request: refuse(request, -32603, f"no {os.environ['TOKEN']}\x1b[2J"), tools={})


def silent() -> None:
    """Send nothing, and keep running after stdin is closed."""
    time.sleep(LONG)


def held() -> None:
    """Answer nothing until a file exists, then list one tool; exit if stdin is closed."""
    asked = select.poll()
    asked.register(sys.stdin, 0)  # report only that it is closed
    while not Path(os.environ["RELEASED"]).exists():
        if asked.poll(20):
            return
    serve_page(tool("hoist_sails"))


def stuck() -> None:
    """Answer the handshake, but never answer tools/list."""
    print("warming up", file=sys.stderr, flush=True)
    serve(lambda _: time.sleep(LONG), tools={})


def crash() -> None:
    """Exit immediately with a message that contains the token."""
    print("starting\nfatal: cannot log in with", os.environ.get("TOKEN"), file=sys.stderr)
    sys.exit(3)


def banner() -> None:
    """Print a greeting on stdout, then behave normally."""
    print("Welcome to the best server of all!", flush=True)
    serve_page(tool("good"))


def garbage() -> None:
    """Write lines that are not MCP messages to stdout, without end."""
    while True:
        print("lorem ipsum" * 50)


def endless_line() -> None:
    """Write one endless line to stdout."""
    while True:
        sys.stdout.write("x" * 65_536)


def children() -> None:
    """Start a child and a grandchild process, and write all three process ids to a file."""
    sleep = f"import time; time.sleep({LONG})"
    script = f"import subprocess, sys; p = subprocess.Popen([sys.executable, '-c', {sleep!r}])"
    script += f"; print(p.pid, flush=True); {sleep}"
    child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert child.stdout
    pids = [os.getpid(), child.pid, int(child.stdout.readline())]
    Path(os.environ["PIDS"]).write_text(" ".join(map(str, pids)))
    (stuck if "HANG" in os.environ else lambda: serve_page(tool("good")))()


def slow() -> None:
    """Start to answer only after the expected number of servers has started."""
    folder = Path(os.environ["FOLDER"])
    (folder / str(os.getpid())).touch()
    while len(list(folder.iterdir())) < int(os.environ["OTHERS"]):
        time.sleep(0.02)
    serve_page(tool("good"))


def callee() -> None:
    """Answer calls as the tool's name suggests; events are logged to the file NOTES."""
    note(f"started {os.getpid()}")
    for line in sys.stdin:
        request = json.loads(line)
        match request.get("method"):
            case "initialize":
                about = {
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "raw", "version": "1"},
                }
                reply(request, {"protocolVersion": "2025-06-18", **about})
            case "tools/list":
                names = ("good", "colour", "refuse", "die", "halve")
                reply(request, {"tools": [tool(name) for name in names]})
            case "tools/call":
                answer(request, request["params"]["name"], request["params"].get("arguments", {}))
            case "notifications/cancelled":
                note("cancelled")
            case "ping":
                reply(request, {})


def answer(request: Request, name: str, arguments: dict[str, Any]) -> None:
    """Answer a tool call."""
    results: dict[str, dict[str, object]] = {
        "good": {"content": [], "structuredContent": {"days": 3}, "unknown": [1]},
        "lie": {"content": [], "structuredContent": {"days": "three"}},
        "forget": {"content": []},
        "nonsense": {"content": "no list"},
        "process": text(str(os.getpid())),
        "colour": text(os.environ.get("COLOUR", "none")),
        "halve": text("half \ud83d"),
        "odd\tname": text("by its own name"),
        "fail": {**text(f"no {arguments}"), "isError": True},
    }
    if name in results:
        reply(request, results[name])
    else:
        {"wait": wait, "refuse": refuse_with_token, "talk": talk}.get(name, misbehave)(request)


def text(words: str) -> dict[str, object]:
    """A tool result with one text."""
    return {"content": [{"type": "text", "text": words}]}


def wait(request: Request) -> None:
    """Answer after a while, without blocking other calls."""
    note("waiting")
    seconds = request["params"]["arguments"]["seconds"]
    timer = threading.Timer(seconds, reply, (request, text("done")))
    timer.daemon = True
    timer.start()


def refuse_with_token(request: Request) -> None:
    """Refuse a call with an error that repeats the token."""
    refuse(request, -32000, f"no {os.environ['TOKEN']}\x1b[2J")


def talk(request: Request) -> None:
    """Send unrequested progress, then answer."""
    for number in range(300):
        progress = {"progressToken": "none", "progress": number}
        send({"jsonrpc": "2.0", "method": "notifications/progress", "params": progress})
    reply(request, text("done"))


def misbehave(request: Request) -> None:
    """Never answer; depending on the tool's name, flood or close stdout, or exit."""
    match request["params"]["name"]:
        case "flood":
            garbage()
        case "die":
            print("fatal: out of luck,", os.environ.get("TOKEN"), file=sys.stderr, flush=True)
            os._exit(3)
        case "close":
            os.close(1)
    time.sleep(LONG)


def note(line: str) -> None:
    """Append a line to the file NOTES, if it is configured."""
    if path := os.environ.get("NOTES"):
        with Path(path).open("a") as file:
            file.write(f"{line}\n")


def modern() -> None:
    """Support only the newer protocol, which has no handshake."""
    for line in sys.stdin:
        request = json.loads(line)
        match request.get("method"):
            case "server/discover":
                about = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
                reply(request, {**about, **hints()})
            case "tools/list":
                reply(request, {"tools": [tool("good")], **hints()})
            case _ if "id" in request:
                refuse(request, -32022, "Unsupported version", {"supported": ["2026-07-28"]})


def hints() -> dict[str, object]:
    """The fields that every answer of the newer protocol has."""
    return {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}


if __name__ == "__main__":
    globals()[sys.argv[1]]()
