"""An MCP server whose tools answer with its own name.

    python3 -S -E named_server.py NAME SECONDS TOOL…

It begins to read after SECONDS. `NAME_grow {tool}` adds a tool and tells so; `NAME_die` ends it with code 3.
"""

import json
import sys
import time

name, seconds, tools = sys.argv[1], float(sys.argv[2]), sys.argv[3:] + [sys.argv[1] + "_grow", sys.argv[1] + "_die"]
time.sleep(seconds)


def say(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


for line in sys.stdin:
    message = json.loads(line)
    method, id = message.get("method"), message.get("id")
    if id is None:
        continue
    if method == "initialize":
        capabilities = {"tools": {"listChanged": True}}
        info = {"name": name, "version": "1"}
        say({"id": id, "result": {"protocolVersion": "2025-06-18", "capabilities": capabilities, "serverInfo": info}})
    elif method == "tools/list":
        schema = {"type": "object"}
        listed = [{"name": tool, "description": f"{tool} of {name}", "inputSchema": schema} for tool in tools]
        say({"id": id, "result": {"tools": listed}})
    elif method == "tools/call":
        called = message["params"]["name"]
        if called == name + "_die":
            sys.stderr.write("FATAL: out of cheese\n")
            sys.exit(3)
        if called == name + "_grow":
            tools.append(message["params"]["arguments"]["tool"])
            say({"method": "notifications/tools/list_changed"})
        say({"id": id, "result": {"content": [{"type": "text", "text": name}]}})
    else:
        say({"id": id, "error": {"code": -32601, "message": "no such method"}})
