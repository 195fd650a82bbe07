"""The server without faults, and small helpers for the modes that break it."""

import json
import os
import sys
import threading
import time

# Nothing here outlives a test run by long, whatever the client forgets. (An alarm also ends a child that ignores SIGTERM.)
LIFETIME_SECONDS = 300


class Server:
    """The well-behaved part."""

    def __init__(self, number):
        self.number = number
        self.heard = []
        self.answers = {}
        self.writing = threading.Lock()
        self.next_request = 0
        text = {"type": "string"}
        number = {"type": "integer"}
        self.tools = {}
        self.add_tool("echo", self.echo, {"message": text, "delay_ms": number}, ["message"], safe=True)
        self.add_tool("note", self.note, {"message": text, "delay_ms": number}, ["message"])
        self.add_tool("heard", self.tell_heard, {}, [], safe=True)
        self.add_tool("trouble", self.no_trouble, {}, [])

    def add_tool(self, name, function, properties, required, safe=False):
        definition = {
            "name": name,
            "description": f"{name}, for tests",
            "inputSchema": {"type": "object", "properties": properties, "required": required},
        }
        if safe:
            definition["annotations"] = {"readOnlyHint": True}
        self.tools[name] = (definition, function)

    def on_trouble(self, function):
        """`function(id, params)` runs when `trouble` is called; it answers, or does not."""
        self.tools["trouble"] = (self.tools["trouble"][0], function)

    # Reading

    def run(self):
        for line in sys.stdin.buffer:
            self.receive(line)

    def receive(self, line):
        try:
            message = json.loads(line)
            method = message.get("method")
        except (ValueError, AttributeError):
            self.heard.append(line[:200].decode("utf-8", "replace").rstrip())
            return
        self.heard.append(method or "response")
        if method is None:
            self.answers[message.get("id")] = message
        elif "id" not in message:
            self.on_notification(message)
        else:
            self.on_request(message["id"], method, message.get("params") or {})

    def on_request(self, id, method, params):
        if method == "initialize":
            self.on_initialize(id, params)
        elif method == "ping":
            self.on_ping(id)
        elif method == "tools/list":
            self.on_list(id, params)
        elif method == "tools/call" and params.get("name") in self.tools:
            self.tools[params["name"]][1](id, params)
        elif method == "tools/call":
            self.refuse(id, -32602, f"Unknown tool: {params.get('name')}")
        else:
            self.refuse(id, -32601, f"Method not found: {method}")

    def on_notification(self, message):
        pass

    def on_initialize(self, id, params):
        self.answer(id, {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {"listChanged": True}},
            "serverInfo": {"name": "hostile", "version": "1"},
        })

    def on_ping(self, id):
        self.answer(id, {})

    def on_list(self, id, params):
        self.answer(id, {"tools": [definition for definition, _ in self.tools.values()]})

    # Tools

    def echo(self, id, params):
        arguments = params.get("arguments", {})
        self.later(arguments.get("delay_ms", 0) / 1000, lambda: self.answer_text(id, arguments["message"]))

    def note(self, id, params):
        if "HOSTILE_LEDGER" in os.environ:
            add_line(os.environ["HOSTILE_LEDGER"], params["arguments"]["message"])
        self.echo(id, params)

    def tell_heard(self, id, params):
        self.answer_text(id, json.dumps(self.heard))

    def no_trouble(self, id, params):
        self.answer_text(id, "no trouble")

    # Writing

    def answer_text(self, id, text):
        self.answer(id, {"content": [{"type": "text", "text": text}]})

    def answer(self, id, result):
        self.send({"jsonrpc": "2.0", "id": id, "result": result})

    def refuse(self, id, code, message):
        self.send({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})

    def notify(self, method, params):
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def ask(self, method, params, seconds=10):
        """Sends a request to the client and gives back its answer, or None when none came."""
        self.next_request += 1
        id = f"ask-{self.next_request}"
        self.send({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
        deadline = time.monotonic() + seconds
        while id not in self.answers and time.monotonic() < deadline:
            time.sleep(0.01)
        return self.answers.pop(id, None)

    def send(self, message):
        self.write(line_of(message))

    def write(self, data):
        with self.writing:
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()

    def later(self, seconds, function):
        if seconds <= 0:
            function()
            return
        timer = threading.Timer(seconds, function)
        timer.daemon = True
        timer.start()

    def fault_is_due(self):
        """True as often as the fault is to be shown; each True is remembered."""
        path = os.environ.get("HOSTILE_STATE")
        if path is None:
            return True
        shown = os.path.getsize(path) if os.path.exists(path) else 0
        if shown >= int(os.environ.get("HOSTILE_TIMES", "1")):
            return False
        with open(path, "ab") as state:
            state.write(b".")
        return True

    def if_due(self, fault):
        """For `on_trouble`: the fault when it is due, else an ordinary answer."""
        return lambda id, params: fault(id, params) if self.fault_is_due() else self.no_trouble(id, params)


def line_of(message):
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def text_answer(id, text):
    return {"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": text}]}}


def add_line(path, text):
    with open(path, "a", encoding="utf-8") as file:
        file.write(text + "\n")


def die(code, words=None):
    """Ends the process at once, timers and buffers included."""
    if words:
        os.write(2, words.encode() + b"\n")
    os._exit(code)


def stay(seconds=LIFETIME_SECONDS):
    time.sleep(seconds)
    die(0)
