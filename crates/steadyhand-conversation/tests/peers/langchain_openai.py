"""Lets LangChain read conversations and write them for OpenAI: lists of messages in, for each OpenAI's or its words out."""

import json
import signal
import sys

from langchain_core.messages import AnyMessage, convert_to_openai_messages
from pydantic import TypeAdapter

signal.alarm(120)
reader = TypeAdapter(list[AnyMessage])


def written(messages):
    try:
        return convert_to_openai_messages(reader.validate_python(messages))
    except Exception as refusal:
        return f"{type(refusal).__name__}: {refusal}"


json.dump([written(messages) for messages in json.load(sys.stdin)], sys.stdout)
