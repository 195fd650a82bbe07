"""Goes on with a history that broke off inside a call. Argument: the base URL."""

import sys

import anthropic

client = anthropic.Anthropic(base_url=sys.argv[1], api_key="any", max_retries=0)
history = [
    {"role": "user", "content": "What is the weather in Rome?"},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_A", "name": "weather", "input": {"city": "Rome"}}]},
    {"role": "user", "content": "Hello?"},
]
tools = [{"name": "weather", "description": "Tells the weather", "input_schema": {"type": "object"}}]
try:
    print(client.messages.create(model="claude-sonnet-5", max_tokens=100, tools=tools, messages=history).content[0].text)
except anthropic.APIStatusError as error:
    print(error.status_code, error.body["error"]["message"])
