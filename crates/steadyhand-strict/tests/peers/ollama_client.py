"""Sends conversations with the ollama package, whole and streamed; prints what it made of each answer."""

import json
import signal
import sys

from ollama import Client, ResponseError

signal.alarm(120)
task = json.load(sys.stdin)
client = Client(host=task["host"], timeout=60)


def whole(messages):
    return client.chat(model="m", messages=messages).message.content


def streamed(messages):
    return "".join(part.message.content for part in client.chat(model="m", messages=messages, stream=True))


def told(send, messages):
    try:
        return send(messages)
    except ResponseError as refusal:
        return f"{refusal.status_code}: {refusal.error}"


json.dump([[told(send, messages) for send in (whole, streamed)] for messages in task["conversations"]], sys.stdout)
