"""An MCP server over stdio; its argument names a file with a JSON list of its tools."""

import json
import sys
from pathlib import Path

FILE = Path(sys.argv[1])

for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    method = request.get("method")
    answer: dict[str, object] = {"jsonrpc": "2.0", "id": request["id"]}
    if method == "initialize":
        answer["result"] = {
            "protocolVersion": request["params"]["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "declared", "version": "1"},
        }
    elif method == "tools/list":
        answer["result"] = {"tools": json.loads(FILE.read_text("utf-8"))}
    elif method == "tools/call":
        answer["result"] = {"content": [{"type": "text", "text": "called"}]}
    else:
        answer["error"] = {"code": -32601, "message": "Unknown method"}
    print(json.dumps(answer), flush=True)
