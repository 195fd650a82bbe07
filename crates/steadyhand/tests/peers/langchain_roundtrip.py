"""Passes messages through LangChain for Python: dicts in, every shape it writes out."""

import json
import sys

from langchain_core.load import dumps, load
from langchain_core.messages import message_to_dict, messages_from_dict

given = json.load(sys.stdin)
messages = messages_from_dict(given["dicts"])
constructors = [json.loads(dumps(message)) for message in messages]

# Its own reading of each shape must agree before ours is held against it.
assert load(constructors, allowed_objects="core") == messages, "dumps and load disagree"
for message, flat in zip(messages, given["flat"], strict=True):
    read = type(message).model_validate(flat)
    assert read == message, f"flat reads as {read!r}, dict as {message!r}"

json.dump(
    {
        "dicts": [message_to_dict(message) for message in messages],
        "constructors": constructors,
        "flat": [message.model_dump() for message in messages],
    },
    sys.stdout,
)
