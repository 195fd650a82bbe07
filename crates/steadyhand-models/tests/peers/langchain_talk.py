"""LangChain for Python makes a conversation with tools, and reads one of ours."""

import json
import sys

from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.messages import convert_to_openai_messages, message_to_dict, messages_from_dict

given = messages_from_dict(json.load(sys.stdin))
calls = [{"name": "get_weather", "args": {"city": "Rome"}, "id": "call_1"}, {"name": "get_weather", "args": {"city": "Oslo"}, "id": "call_2"}]
broken = [{"name": "get_weather", "args": '{"city":', "id": "call_3", "error": "unfinished"}]
made = [
    SystemMessage("Be brief."),
    HumanMessage("What is the weather?"),
    AIMessage("Let me look.", tool_calls=calls, invalid_tool_calls=broken),
    ToolMessage("18 C", tool_call_id="call_1"),
    ToolMessage("no such city", tool_call_id="call_2", status="error", artifact={"code": 404}),
]
json.dump({"made": [message_to_dict(message) for message in made],
           "kinds": [message.type for message in given],
           "calls": [[call["id"], call["name"], call["args"]] for message in given for call in getattr(message, "tool_calls", [])],
           "results": [[message.tool_call_id, message.status] for message in given if message.type == "tool"],
           "usage": [message.usage_metadata for message in given if message.type == "ai"],
           "openai": convert_to_openai_messages(given)}, sys.stdout)
