"""Shows what ChatOllama sends for tools: definitions in, the request's `tools` out. No Ollama is needed."""

import json
import signal
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

from langchain_core.tools import StructuredTool
from langchain_ollama import ChatOllama

signal.alarm(120)
requests = []


class Ollama(BaseHTTPRequestHandler):
    def do_POST(self):
        requests.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
        message = {"role": "assistant", "content": "ok"}
        answer = {"model": "m", "created_at": "2026-01-01T00:00:00Z", "message": message, "done": True, "done_reason": "stop"}
        body = json.dumps(answer).encode() + b"\n"
        self.send_response(200)
        self.send_header("content-type", "application/x-ndjson")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = HTTPServer(("127.0.0.1", 0), Ollama)
threading.Thread(target=server.serve_forever, daemon=True).start()
tools = [
    StructuredTool.from_function(
        func=lambda **_: None,
        name=tool["name"],
        description=tool["description"],
        args_schema=tool["schema"],
    )
    for tool in json.load(sys.stdin)
]
model = ChatOllama(model="m", base_url=f"http://127.0.0.1:{server.server_port}")
model.bind_tools(tools).invoke("hi")
json.dump(requests[0]["tools"], sys.stdout)
