"""An MCP server whose tools differ in whether they run as tasks."""

import json
import sys

SUPPORT = {"plain": None, "may": "optional", "never": "forbidden", "must": "required"}


def tool(name, support):
    definition = {"name": name, "description": f"Is {name}", "inputSchema": {"type": "object"}}
    if support:
        definition["execution"] = {"taskSupport": support}
    return definition


for line in sys.stdin:
    message = json.loads(line)
    method, params = message.get("method"), message.get("params") or {}
    answer = {"jsonrpc": "2.0", "id": message.get("id")}
    if method == "initialize":
        tasks = {"requests": {"tools": {"call": {}}}}
        answer["result"] = {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}, "tasks": tasks},
            "serverInfo": {"name": "tasks", "version": "1"},
        }
    elif method == "tools/list":
        answer["result"] = {"tools": [tool(*it) for it in SUPPORT.items()]}
    elif method == "tools/call" and params["name"] == "must" and "task" not in params:
        answer["error"] = {"code": -32601, "message": "must runs only as a task"}
    elif method == "tools/call":
        answer["result"] = {"content": [{"type": "text", "text": f"{params['name']} ran"}]}
    else:
        answer["error"] = {"code": -32601, "message": "no such method"}
    if "id" in message:
        print(json.dumps(answer), flush=True)
