"""MCP servers that behave in one particular, mostly bad way: ``raw.py BEHAVIOUR``.

They speak JSON-RPC over stdio without the SDK, which would not let them.
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
    """Build a valid tool with further fields."""
    return {"name": name, "description": f"Does {name}.", "inputSchema": {"type": "object"}, **more}


def send(message: object) -> None:
    """Write one line, at once: threads may do so."""
    print(f"{json.dumps(message)}\n", end="", flush=True)


def reply(request: Request, result: object) -> None:
    """Answer a request."""
    send({"jsonrpc": "2.0", "id": request["id"], "result": result})


def refuse(request: Request, code: int, message: str, data: object = None) -> None:
    """Answer a request with an error."""
    error = {"code": code, "message": message, "data": data}
    send({"jsonrpc": "2.0", "id": request["id"], "error": error})


def serve(list_tools: Callable[[Request], None], **capabilities: object) -> None:
    """Shake hands, then pass every tools/list to a function."""
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
    """Give every tools/list the same answer."""
    page = {"tools": tools, **({"nextCursor": cursor} if cursor else {})}
    serve(lambda request: reply(request, page), tools={})


def reporting() -> None:
    """List the words in the file TOOLS, and report their changes; note a start in the file STARTS.

    As ``changing.py``, which imports the SDK for one and a half seconds.
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
    """List three pages of two tools."""

    def page(request: Request) -> None:
        start = int((request.get("params") or {}).get("cursor", "0"))
        more = {"nextCursor": str(start + 2)} if start < 4 else {}
        reply(request, {"tools": [tool(f"t{start}"), tool(f"t{start + 1}")], **more})

    serve(page, tools={})


def endless() -> None:
    """List endless empty pages."""
    pages = iter(range(10**9))
    serve(lambda request: reply(request, {"tools": [], "nextCursor": f"p{next(pages)}"}), tools={})


def same_page() -> None:
    """Ignore cursors, and return one on every page."""
    serve_page(tool("only"), cursor="next")


def many() -> None:
    """List more tools than the limit."""
    serve_page(*(tool(f"tool_{number}") for number in range(10_005)))


def bad_tools() -> None:
    """List two good tools between bad ones."""
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
    """List good tools around one that no strict parser reads."""
    first, last = json.dumps(tool("good")), json.dumps(tool("also_good"))
    tools = f"[{first}, {UNREADABLE[os.environ['DEFECT']]}, {last}]"

    def answer(request: Request) -> None:
        head = f'{{"jsonrpc": "2.0", "id": {request["id"]}, "result": '
        print(head + f'{{"tools": {tools}}}}}', flush=True)

    serve(answer, tools={})


def unreadable_answer() -> None:
    """Answer tools/list with a message that ends too early, and nothing after it."""
    head = '{{"jsonrpc": "2.0", "id": {}, "result": {{"tools": ['
    serve(lambda request: print(head.format(request["id"]), flush=True), tools={})


def control_characters() -> None:
    """List a tool whose description steers the terminal."""
    serve_page(tool("paint", description="Paints \x1b[31mred\x1b[0m\x07 walls.\x00"))


def only_prompts() -> None:
    """Offer prompts and no tools."""
    serve(lambda request: refuse(request, -32601, "Method not found"), prompts={})


def fails() -> None:
    """Announce tools and refuse to list them, with an error that repeats the token."""
    serve(lambda request: refuse(request, -32603, f"no {os.environ['TOKEN']}\x1b[2J"), tools={})


def silent() -> None:
    """Send nothing, and ignore the end of stdin."""
    time.sleep(LONG)


def held() -> None:
    """Answer nothing until a file exists, then list one tool; end if nothing can ask any more."""
    asked = select.poll()
    asked.register(sys.stdin, 0)  # for its end alone
    while not Path(os.environ["RELEASED"]).exists():
        if asked.poll(20):
            return
    serve_page(tool("hoist_sails"))


def stuck() -> None:
    """Shake hands, and send nothing after it."""
    print("warming up", file=sys.stderr, flush=True)
    serve(lambda _: time.sleep(LONG), tools={})


def crash() -> None:
    """Exit at once with a message that contains the token."""
    print("starting\nfatal: cannot log in with", os.environ.get("TOKEN"), file=sys.stderr)
    sys.exit(3)


def banner() -> None:
    """Print a greeting on stdout first."""
    print("Welcome to the best server of all!", flush=True)
    serve_page(tool("good"))


def garbage() -> None:
    """Write endless lines other than MCP on stdout."""
    while True:
        print("lorem ipsum" * 50)


def endless_line() -> None:
    """Write one endless line on stdout."""
    while True:
        sys.stdout.write("x" * 65_536)


def children() -> None:
    """Start a child and a grandchild, and write their ids to a file."""
    sleep = f"import time; time.sleep({LONG})"
    script = f"import subprocess, sys; p = subprocess.Popen([sys.executable, '-c', {sleep!r}])"
    script += f"; print(p.pid, flush=True); {sleep}"
    child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert child.stdout
    pids = [os.getpid(), child.pid, int(child.stdout.readline())]
    Path(os.environ["PIDS"]).write_text(" ".join(map(str, pids)))
    (stuck if "HANG" in os.environ else lambda: serve_page(tool("good")))()


def slow() -> None:
    """Answer only after the expected number of servers has started."""
    folder = Path(os.environ["FOLDER"])
    (folder / str(os.getpid())).touch()
    while len(list(folder.iterdir())) < int(os.environ["OTHERS"]):
        time.sleep(0.02)
    serve_page(tool("good"))


def callee() -> None:
    """Answer calls as the tool's name says, and log them to the file NOTES."""
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
    """Answer a call."""
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
    """Build a result of one text."""
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
    """Do not answer."""
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
    """Add a line to the notes, if there is a file for them."""
    if path := os.environ.get("NOTES"):
        with Path(path).open("a") as file:
            file.write(f"{line}\n")


def modern() -> None:
    """Support only the protocol without a handshake."""
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
    """Return the fields of every answer of the newer protocol."""
    return {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}


if __name__ == "__main__":
    globals()[sys.argv[1]]()
