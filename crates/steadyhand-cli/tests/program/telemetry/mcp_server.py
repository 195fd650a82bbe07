"""An MCP server with a tool that works, one that says no, and one that is refused with an error of the protocol."""

import json
import sys

for line in sys.stdin:
    message = json.loads(line)
    method, params = message.get("method"), message.get("params") or {}
    answer = {"jsonrpc": "2.0", "id": message.get("id")}
    if method == "initialize":
        answer["result"] = {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "far", "version": "1"},
        }
    elif method == "tools/list":
        names = ["echo", "no", "refuse"]
        answer["result"] = {
            "tools": [{"name": name, "description": name, "inputSchema": {"type": "object"}} for name in names]
        }
    elif method == "tools/call" and params["name"] == "refuse":
        answer["error"] = {"code": -32050, "message": "refused"}
    elif method == "tools/call":
        text = {"type": "text", "text": params["name"]}
        answer["result"] = {"content": [text], "isError": params["name"] == "no"}
    else:
        answer["error"] = {"code": -32601, "message": "no such method"}
    if "id" in message:
        print(json.dumps(answer), flush=True)
