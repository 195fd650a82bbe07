"""Faults in what is written: more on stdout than messages, and answers that are not quite right."""

import json

from table import mode
from well_behaved import die, line_of, text_answer


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


@mode("an answer with a number in it that JSON has not")
def broken_json(server):
    server.on_trouble(server.if_due(lambda id, params: server.write(
        b'{"jsonrpc":"2.0","id":%d,"result":{"content":[],"structuredContent":{"value":NaN}}}\n' % id)))


@mode("an answer that Python has printed in place of JSON")
def python_object(server):
    server.on_trouble(server.if_due(lambda id, params: server.write(
        repr(text_answer(id, "nearly")).encode() + b"\n")))


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
