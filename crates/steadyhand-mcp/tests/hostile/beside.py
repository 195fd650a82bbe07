"""No fault, odd lists of tools, and what goes on beside a call."""

import json
import os
import sys
import threading
import time

from table import mode


@mode("no fault at all")
def well(server):
    pass


# Lists of tools


@mode("tools/list answers with an error")
def list_fails(server):
    well_behaved = server.on_list
    server.on_list = lambda id, params: (
        server.refuse(id, -32603, "the database of tools is locked") if server.fault_is_due() else well_behaved(id, params))


@mode("every page of tools/list names a next one")
def endless_pages(server):
    def page(id, params):
        number = int(params.get("cursor") or 0)
        definitions = [definition for definition, _ in server.tools.values()]
        if number:
            definitions = [{"name": f"page_{number}", "inputSchema": {"type": "object"}}]
        server.answer(id, {"tools": definitions, "nextCursor": str(number + 1)})

    server.on_list = page


def also_lists(server, *definitions):
    def listed(id, params):
        server.answer(id, {"tools": [*definitions, *(definition for definition, _ in server.tools.values())]})

    server.on_list = listed


@mode("one of its tools has no schema")
def no_schema(server):
    also_lists(server, {"name": "odd", "description": "has no schema"})


@mode("three of its tools have schemas that are none")
def bad_schema(server):
    also_lists(
        server,
        {"name": "bad_type", "inputSchema": {"type": "object", "properties": {"a": {"type": "nonsense"}}}},
        {"name": "bad_shape", "inputSchema": "an object, please"},
        {"name": "bad_ref", "inputSchema": {"type": "object", "properties": {"a": {"$ref": "#/$defs/missing"}}}},
    )


@mode("six of its tools have schemas that are small on paper and take for ever, or all memory")
def heavy_schemas(server):
    def doubled(keyword):
        links = {f"a{at}": {keyword: [{"$ref": f"#/$defs/a{at + 1}"}] * 2} for at in range(40)}
        return {"allOf": [{"$ref": "#/$defs/a0"}], "$defs": {**links, "a40": {}}}

    def levels(count, names):
        fields = {f"f{at}": {} for at in range(names)}
        level = lambda at: {
            "type": "object", "required": [*fields],
            "properties": {name: {"$ref": f"#/$defs/a{at + 1}"} for name in fields}}
        links = {f"a{at}": level(at) for at in range(count)}
        return {"allOf": [{"$ref": "#/$defs/a0"}], "$defs": {**links, f"a{count}": {"type": "string"}}}

    def tool(name, **schema):
        return {"name": name, "description": name, "inputSchema": {"type": "object", **schema}}

    def of_value(**schema):
        return {"properties": {"value": schema}}

    also_lists(
        server,
        tool("itself", allOf=[{"$ref": "#"}] * 100),
        tool("all_of", **doubled("allOf")),
        tool("one_of", **doubled("oneOf")),
        tool("digits", **of_value(type="string", pattern="\\d" * 50_000)),
        tool("places", **of_value(type="string", pattern="[01]*1[01]{2000}$")),
        tool("levels", **levels(7, 40)),
    )


@mode("NUMBER notifications that the tools have changed (10,000), then the answer")
def list_changed_storm(server):
    def trouble(id, params):
        for _ in range(int(server.number or 10_000)):
            server.send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
        server.answer_text(id, "after the storm")

    server.on_trouble(trouble)


# Beside the call


@mode("NUMBER megabytes on stderr (50) before an answer")
def stderr_flood(server):
    def trouble(id, params):
        line = b"DEBUG " + b"z" * 1017 + b"\n"
        for _ in range(int((server.number or 50) * 1024)):
            sys.stderr.buffer.write(line)
        sys.stderr.buffer.flush()
        server.answer_text(id, "after the flood")

    server.on_trouble(trouble)


@mode("asks the client for roots, a form and a sample; the answer says what came back")
def asks(server):
    def trouble(id, params):
        form = {"type": "object", "properties": {"name": {"type": "string"}}}
        message = {"role": "user", "content": {"type": "text", "text": "hi"}}
        server.answer_text(id, json.dumps([
            server.ask("roots/list", {}),
            server.ask("elicitation/create", {"message": "Your name?", "requestedSchema": form}),
            server.ask("sampling/createMessage", {"messages": [message], "maxTokens": 10}),
            server.ask("no/such_method", {}),
        ]))

    # In a thread of its own: the answers to its questions are read meanwhile.
    server.on_trouble(lambda id, params: threading.Thread(target=trouble, args=(id, params), daemon=True).start())


@mode("reports progress: trouble {steps, interval_ms}")
def progress(server):
    server.add_tool("trouble", None, {"steps": {"type": "integer"}, "interval_ms": {"type": "integer"}}, [])

    def trouble(id, params):
        arguments = params.get("arguments", {})
        token = params.get("_meta", {}).get("progressToken")
        steps = arguments.get("steps", 3)
        for step in range(1, steps + 1):
            time.sleep(arguments.get("interval_ms", 20) / 1000)
            if token is not None:
                server.notify("notifications/progress", {
                    "progressToken": token, "progress": step, "total": steps, "message": f"step {step} of {steps}"})
        server.answer_text(id, "done" if token is not None else "nobody wants progress")

    server.on_trouble(lambda id, params: threading.Thread(target=trouble, args=(id, params), daemon=True).start())


@mode("a call that never ends; `cancelled` lists the cancellations that came")
def cancel_aware(server):
    calls, cancelled = [], []

    def remember(message):
        if message["method"] == "notifications/cancelled":
            cancelled.append({**message["params"], "known": message["params"].get("requestId") in calls})

    server.on_notification = remember
    server.on_trouble(lambda id, params: calls.append(id))
    server.add_tool("cancelled", lambda id, params: server.answer_text(id, json.dumps(cancelled)), {}, [], safe=True)


@mode("`environment` gives back the variables it was started with")
def env(server):
    server.add_tool("environment", lambda id, params: server.answer_text(id, json.dumps(dict(os.environ))), {}, [], safe=True)


@mode("control_zwave_device declares deviceName and action, and refuses device_name in its own words")
def camel(server):
    def control(id, params):
        arguments = params.get("arguments", {})
        for name in ("deviceName", "action"):
            if name not in arguments:
                words = f"Error: Missing required parameter: {name} (got: {', '.join(arguments)})"
                server.answer(id, {"content": [{"type": "text", "text": words}], "isError": True})
                return
        if arguments["deviceName"] == "Broken One":
            server.answer(id, {"content": [{"type": "text", "text": "Device 'Broken One' does not answer"}], "isError": True})
            return
        server.answer_text(id, json.dumps(arguments))

    # `required` is left to the server: only so can its own error be seen.
    names = {"deviceName": {"type": "string"}, "action": {"type": "string"}, "level": {"type": "integer"}}
    server.add_tool("control_zwave_device", control, names, [])
