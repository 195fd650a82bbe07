"""An MCP server that is killed again and again: every note it takes is one line of a file, written before it answers.
`killed.py LEDGER` speaks on stdio, `killed.py LEDGER PORT` over HTTP. Nothing but the standard library, and little of
that: it has to be up soon."""

import json
import os
import socket
import sys
import threading
import time

ledger = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
STRING = {"type": "object", "properties": {"line": {"type": "string"}}, "required": ["line"]}


def tool(name, is_safe):
    return {"name": name, "description": name, "inputSchema": STRING, "annotations": {"readOnlyHint": is_safe}}


def result(message):
    method = message["method"]
    if method == "initialize":
        version = message["params"]["protocolVersion"]
        info = {"name": "killed", "version": "1"}
        return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "tools/list":
        return {"tools": [tool("note", False), tool("look", True)]}
    if method == "tools/call":
        line = message["params"]["arguments"]["line"]
        if message["params"]["name"] == "note":
            time.sleep(0.002)
            os.write(ledger, (line + "\n").encode())
            time.sleep(0.002)
        return {"content": [{"type": "text", "text": line}]}
    if method == "ping":
        return {}
    return None


def answer(message):
    found = result(message)
    if found is None:
        error = {"code": -32601, "message": "no such method"}
        return json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error})
    return json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": found})


def on_stdio():
    writing = threading.Lock()

    def handle(message):
        text = answer(message) + "\n"
        with writing:
            sys.stdout.write(text)
            sys.stdout.flush()

    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            threading.Thread(target=handle, args=[message], daemon=True).start()


def read(stream):
    """One request: its first word and its body; none at the end."""
    first = stream.readline().split()
    if not first:
        return None
    length = 0
    while (line := stream.readline().strip()) != b"":
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    return first[0], stream.read(length)


def serve(connection):
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    stream = connection.makefile("rb")
    while (request := read(stream)) is not None:
        verb, body = request
        message = json.loads(body) if verb == b"POST" else {}
        status, text = "202 Accepted", ""
        if verb != b"POST":
            status = "405 Method Not Allowed"
        elif "id" in message:
            status, text = "200 OK", answer(message)
        head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {len(text)}\r\n\r\n"
        connection.sendall((head + text).encode())


def over_http(port):
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(256)
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=serve, args=[connection], daemon=True).start()


if len(sys.argv) > 2:
    over_http(int(sys.argv[2]))
else:
    on_stdio()
