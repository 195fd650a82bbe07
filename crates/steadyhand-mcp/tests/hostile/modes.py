"""The faults: one small function per mode, and the table of them."""

import json
import os
import signal
import sys
import threading
import time

from well_behaved import LIFETIME_SECONDS, add_line, die, line_of, stay, text_answer

MODES = {}


def mode(line):
    """Puts a function into the table under its own name; `line` is what --list says of it."""

    def add(function):
        MODES[function.__name__] = (function, line)
        return function

    return add


@mode("no fault at all")
def well(server):
    pass


# stdout carries more than messages


def noisy(server, noise):
    """Noise at the start and before `trouble` is answered."""
    server.write(noise)

    def trouble(id, params):
        server.write(noise)
        server.answer_text(id, "after the noise")

    server.on_trouble(trouble)


@mode("plain text on stdout, at the start and before an answer")
def plain_text(server):
    noisy(server, b"Hello! I print to stdout\nProcessing request 1 of 1\n")


@mode("coloured log lines and a spinner on stdout")
def ansi(server):
    noisy(server, b"\x1b[32mINFO\x1b[0m server is up\n\x1b[2K\r\x1b[1G\xe2\xa0\x8b loading\x1b[0m\n")


@mode("bytes on stdout that are no UTF-8")
def invalid_utf8(server):
    noisy(server, b"\xff\xfe caf\xe9 \x80\n")


@mode("empty lines on stdout")
def blank_lines(server):
    noisy(server, b"\n\r\n   \n\t\n" * 50)


@mode("JSON on stdout that is no JSON-RPC")
def json_not_rpc(server):
    noisy(server, b'{"level":"info","msg":"starting"}\n42\n"text"\nnull\n{"jsonrpc":"2.0"}\n{"jsonrpc":"1.0","id":1,"result":{}}\n{}\n')


@mode("JSON-RPC batches: a notification at the start, and an answer, each in an array")
def batch_array(server):
    log = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "in a batch"}}
    server.write(line_of([log, log]))
    server.on_trouble(lambda id, params: server.write(line_of([log, text_answer(id, "from a batch")])))


@mode("an answer pretty-printed over many lines")
def pretty_printed(server):
    server.on_trouble(lambda id, params: server.write(
        json.dumps(text_answer(id, "pretty"), indent=2).encode() + b"\n"))


@mode("an answer glued to text on the same line")
def glued(server):
    server.on_trouble(lambda id, params: server.write(b"Processing... 100% " + line_of(text_answer(id, "salvaged"))))


@mode("two answers' worth on one line: a notification and an answer without a line's end between them")
def glued_messages(server):
    log = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "first"}}
    server.on_trouble(lambda id, params: server.write(line_of(log).rstrip() + line_of(text_answer(id, "second"))))


@mode("an answer glued to text, its members in the order of the TypeScript SDK")
def glued_typescript(server):
    as_typescript(server)
    server.on_trouble(lambda id, params: (
        server.write(b"Processing {files: 3}... "), server.answer_text(id, "salvaged")))


@mode("objects on stdout as Node prints them, no JSON, among answers in the order of the TypeScript SDK")
def node_objects(server):
    as_typescript(server)
    noisy(server, b"{\n  level: 'info',\n  tools: [ 'echo' ],\n  nested: {\n    deep: true\n  }\n}\n")


@mode("an answer without a line's end, then the end")
def unended_answer(server):
    def trouble(id, params):
        server.write(line_of(text_answer(id, "the last words")).rstrip())
        die(0)

    server.on_trouble(server.if_due(trouble))


def as_typescript(server):
    """From here on the members of a message stand as the TypeScript SDK writes them: `jsonrpc` and `id` last."""
    server.send = lambda message: server.write(line_of({
        **{name: message[name] for name in message if name not in ("jsonrpc", "id")},
        **{name: message[name] for name in ("jsonrpc", "id") if name in message},
    }))


@mode("a line of 20 MB on stdout before an answer")
def line_20mb(server):
    def trouble(id, params):
        server.write(b"x" * (20 << 20) + b"\n")
        server.answer_text(id, "after the long line")

    server.on_trouble(trouble)


@mode("20,000 log lines on stdout before stdin is read")
def log_storm(server):
    for number in range(20_000):
        server.write(b'{"level":"info","msg":"warming up","step":%d}\n' % number)


# Answers that are not quite right


@mode("every answer carries its id as a string")
def string_id(server):
    send = server.send
    server.send = lambda message: send({**message, "id": str(message["id"])} if "result" in message else message)


@mode("an answer sent twice")
def duplicate_response(server):
    def trouble(id, params):
        server.answer_text(id, "twice")
        server.answer_text(id, "twice")

    server.on_trouble(trouble)


@mode("an answer nobody asked for, then the right one")
def unknown_id(server):
    def trouble(id, params):
        server.answer_text(987654321, "for nobody")
        server.answer_text("no-such-id", "for nobody")
        server.answer_text(None, "for nobody")
        server.answer_text(id, "the right one")

    server.on_trouble(trouble)


@mode("an answer under another id; the right one never comes")
def wrong_id(server):
    server.on_trouble(server.if_due(lambda id, params: server.answer_text(id + 1_000_000, "misdirected")))


@mode("two different results for one request")
def two_results(server):
    def trouble(id, params):
        server.answer_text(id, "first")
        server.answer_text(id, "second")

    server.on_trouble(trouble)


@mode("a call that is never answered")
def no_response(server):
    server.on_trouble(server.if_due(lambda id, params: None))


@mode("a call answered NUMBER seconds later (2)")
def late_response(server):
    def trouble(id, params):
        server.later(server.number or 2, lambda: server.answer_text(id, "late"))

    server.on_trouble(server.if_due(trouble))


@mode("half an answer without its newline, then the end")
def half_frame_eof(server):
    def trouble(id, params):
        server.write(line_of(text_answer(id, "cut short"))[:40])
        die(0)

    server.on_trouble(server.if_due(trouble))


@mode("a content block of a type nobody knows")
def unknown_content(server):
    server.on_trouble(lambda id, params: server.answer(
        id, {"content": [{"type": "hologram", "depth": 3}, {"type": "text", "text": "beside it"}], "vendor": {"kept": True}}))


@mode("content that is a string instead of a list")
def content_string(server):
    server.on_trouble(lambda id, params: server.answer(id, {"content": "just a string"}))


@mode("a result of NUMBER megabytes (100), its id first")
def result_100mb(server):
    def trouble(id, params):
        size = int((server.number or 100) * (1 << 20))
        server.write(b'{"jsonrpc":"2.0","id":%b,"result":{"content":[{"type":"text","text":"' % json.dumps(id).encode())
        for _ in range(size // (1 << 16)):
            server.write(b"y" * (1 << 16))
        server.write(b'"}]}}\n')

    server.on_trouble(trouble)


@mode("a result of NUMBER megabytes (100), its id last")
def result_100mb_typescript(server):
    def trouble(id, params):
        size = int((server.number or 100) * (1 << 20))
        server.write(b'{"result":{"content":[{"type":"text","text":"')
        for _ in range(size // (1 << 16)):
            server.write(b"y" * (1 << 16))
        server.write(b'"}]},"jsonrpc":"2.0","id":%b}\n' % json.dumps(id).encode())

    server.on_trouble(trouble)


# Processes that end, stop or go silent


def ends(server, code, words):
    if server.fault_is_due():
        die(code, words)


def ends_in_initialize(server, code, words):
    well_behaved = server.on_initialize
    server.on_initialize = lambda id, params: (ends(server, code, words), well_behaved(id, params))


@mode("exits with 0 before it reads anything")
def exit0_before_init(server):
    ends(server, 0, "nothing to do, bye")


@mode("exits with 1 before it reads anything")
def exit1_before_init(server):
    ends(server, 1, "cannot open /etc/hostile.conf")


@mode("reads initialize, then exits with 0")
def exit0_during_init(server):
    ends_in_initialize(server, 0, "no client, no service")


@mode("reads initialize, then exits with 1")
def exit1_during_init(server):
    ends_in_initialize(server, 1, "the handshake frightened me")


@mode("prints a Python traceback on stderr and exits with 1")
def traceback(server):
    ends(server, 1, """starting calendar server
Traceback (most recent call last):
  File "server.py", line 3, in <module>
    from mcp.server import Server
ModuleNotFoundError: No module named 'mcp'""")


@mode("fails its first NUMBER starts (1; counted in HOSTILE_STATE), then works")
def flaky_start(server):
    os.environ.setdefault("HOSTILE_TIMES", str(int(server.number or 1)))
    ends(server, 1, "the broker is not up yet")


@mode("exits with 3 while a call runs")
def exit_mid_call(server):
    server.on_trouble(server.if_due(lambda id, params: die(3, "fatal: out of cheese")))


@mode("kills itself while a call runs")
def sigkill(server):
    server.on_trouble(server.if_due(lambda id, params: os.kill(os.getpid(), signal.SIGKILL)))


@mode("stops itself (SIGSTOP) while a call runs")
def sigstop(server):
    server.on_trouble(server.if_due(lambda id, params: os.kill(os.getpid(), signal.SIGSTOP)))


@mode("closes stdout while a call runs, and lives on")
def stdout_closed(server):
    def trouble(id, params):
        os.close(1)
        stay()

    server.on_trouble(server.if_due(trouble))


@mode("reads the handshake and the request for tools, then never again")
def stdin_never_read(server):
    well_behaved = server.on_list

    def list_and_stop(id, params):
        well_behaved(id, params)
        if server.fault_is_due():
            stay()

    server.on_list = list_and_stop


@mode("stops to read during a call (says so in the ledger); asked to end, it first does all that was sent to it")
def reads_to_the_end(server):
    def trouble(id, params):
        asked = threading.Event()
        signal.signal(signal.SIGTERM, lambda *_: asked.set())
        add_line(os.environ["HOSTILE_LEDGER"], "asleep")
        while not asked.is_set():
            time.sleep(0.01)
        # Whatever still comes has one second.
        signal.alarm(1)

    server.on_trouble(server.if_due(trouble))


@mode("needs a moment to tidy up when its stdin ends; says in the ledger that it did")
def tidies_up(server):
    def run_and_tidy():
        run()
        time.sleep(0.2)
        add_line(os.environ["HOSTILE_LEDGER"], "tidied up")

    run, server.run = server.run, run_and_tidy


@mode("never answers initialize")
def silent_init(server):
    well_behaved = server.on_initialize
    server.on_initialize = lambda id, params: None if server.fault_is_due() else well_behaved(id, params)


@mode("talks on stdout and never answers initialize")
def stdout_talker(server):
    silent_init(server)
    server.write(b"Hello! I print to stdout\n")


@mode("begins to read after NUMBER seconds (3)")
def slow_start(server):
    if server.fault_is_due():
        time.sleep(server.number if server.number is not None else 3)


@mode("answers ping only after NUMBER seconds (1)")
def sign_of_life(server):
    answer = server.on_ping
    server.on_ping = lambda id: server.later(server.number or 1, lambda: answer(id))
    server.on_trouble(lambda id, params: None)


@mode("leaves a child behind that has its own session and ignores SIGTERM")
def grandchild(server):
    if os.fork():
        return
    # stdin and stdout stay open: the client must not wait for their end.
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.alarm(LIFETIME_SECONDS)
    if "HOSTILE_PIDS" in os.environ:
        add_line(os.environ["HOSTILE_PIDS"], str(os.getpid()))
    while True:
        time.sleep(1)


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
