"""What passes through us: prompts, resources, completion, messages, questions of one client among several."""

import json
import threading
import time

from table import mode
from well_behaved import die


@mode("offers everything a server can: prompts in two pages, resources, completion, logging; `trouble` changes its prompts")
def offers_all(server):
    prompts = [
        {"name": "greet", "arguments": [{"name": "who", "required": True}], "vendor": {"big": 123456789012345678901234567890}},
        {"name": "part", "icons": [{"src": "data:,", "sizes": "48x48"}]},
    ]

    def on_initialize(id, params):
        server.client_capabilities = params.get("capabilities")
        server.answer(id, {
            "protocolVersion": "2025-11-25",
            "capabilities": {
                "tools": {"listChanged": True}, "prompts": {"listChanged": True}, "resources": {"subscribe": True},
                "completions": {}, "logging": {}, "vendor/thing": {"kept": True},
            },
            "serverInfo": {"name": "hostile", "version": "1"},
            "instructions": "Greet first.",
        })

    def on_request(id, method, params):
        if method == "prompts/list":
            first = int(params.get("cursor") or 0)
            page = {"prompts": prompts[first:first + 1]}
            if first + 1 < len(prompts):
                page["nextCursor"] = str(first + 1)
            server.answer(id, page)
        elif method == "resources/list":
            server.answer(id, {"resources": [{"uri": "test://one", "name": "one", "size": 12345678901234567890}]})
        elif method == "prompts/get":
            token = params.get("_meta", {}).get("progressToken")
            server.notify("notifications/progress", {"progressToken": token, "progress": 1, "total": 2, "vendor": 1})
            server.answer(id, {"messages": [], "params": params, "vendor": 123456789012345678901234567890})
        elif method == "resources/read":
            server.refuse(id, -32002, "no such resource")
        elif method == "slow/thing":
            server.later(60, lambda: server.answer(id, {}))
        else:
            behaved(id, method, params)

    def trouble(id, params):
        prompts.append({"name": "added"})
        server.notify("notifications/prompts/list_changed", {})
        server.answer_text(id, "changed")

    behaved = server.on_request
    server.on_initialize = on_initialize
    server.on_request = on_request
    server.on_trouble(trouble)
    server.add_tool("mirror", lambda id, params: server.answer(id, {
        "content": [{"type": "hologram", "depth": 123456789012345678901234567890}], "params": params, "vendor": [1.0, 1]}), {}, [])
    server.add_tool("declared", lambda id, params: server.answer_text(id, json.dumps(server.client_capabilities)), {}, [])


@mode("`trouble` asks a person at once and answers with what was said; `told` logs a message and a changed resource")
def asks_a_person(server):
    def trouble(id, params):
        form = {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer", "default": 36}}}
        answer = server.ask("elicitation/create", {"message": params["arguments"].get("message", "?"), "requestedSchema": form}, seconds=60)
        server.answer_text(id, json.dumps(answer))

    def told(id, params):
        server.notify("notifications/message", {"level": "info", "data": {"kept": 123456789012345678901234567890}})
        server.notify("notifications/resources/updated", {"uri": "test://one"})
        server.later(params["arguments"].get("delay_ms", 0) / 1000, lambda: server.answer_text(id, "told"))

    in_a_thread = lambda work: lambda id, params: threading.Thread(target=work, args=(id, params), daemon=True).start()
    server.add_tool("trouble", None, {"message": {"type": "string"}}, [])
    server.on_trouble(in_a_thread(trouble))
    server.add_tool("told", told, {"delay_ms": {"type": "integer"}}, [])


# The era


@mode("ends when it is asked for its era, as servers on older SDKs do")
def exits_on_discover(server):
    before = server.on_request

    def on_request(id, method, params):
        if method == "server/discover":
            die(1, "expected initialize request")
        before(id, method, params)

    server.on_request = on_request


@mode("says nothing when it is asked for its era")
def silent_on_discover(server):
    before = server.on_request
    server.on_request = lambda id, method, params: None if method == "server/discover" else before(id, method, params)


@mode("speaks the newer era only, and starts after NUMBER seconds (0)")
def modern(server):
    time.sleep(server.number or 0)
    before = server.on_request
    version = "io.modelcontextprotocol/protocolVersion"

    def on_request(id, method, params):
        if method == "server/discover":
            server.answer(id, {
                "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
                "ttlMs": 0, "cacheScope": "private",
                "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "hostile", "version": "1"}},
            })
        elif method in ("initialize", "ping"):
            server.refuse(id, -32601, f"Method not found: {method}")
        elif params.get("_meta", {}).get(version) != "2026-07-28":
            server.refuse(id, -32602, "no version in _meta")
        else:
            before(id, method, params)

    server.on_request = on_request
