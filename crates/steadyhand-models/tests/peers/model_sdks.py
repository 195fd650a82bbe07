"""The makers' SDKs for Python talk to a strict provider: two calls, their results, an answer; then something invalid.

Arguments: which protocol, and its base URL. Written: what the SDK made of the answers, and the refusal it saw.
"""

import json
import sys

protocol, url = sys.argv[1:3]
QUESTION = "What is the weather in Rome and Oslo?"
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def anthropic_talk(streams):
    import anthropic

    client = anthropic.Anthropic(base_url=url, api_key="k", max_retries=0)
    tools = [{"name": "get_weather", "description": "Tells the weather", "input_schema": SCHEMA}]
    about = {"model": "strict-1", "max_tokens": 100, "tools": tools}

    def ask(messages):
        if not streams:
            return client.messages.create(messages=messages, **about)
        with client.messages.stream(messages=messages, **about) as stream:
            for _ in stream:
                pass
            return stream.get_final_message()

    messages = [{"role": "user", "content": QUESTION}]
    reply = ask(messages)
    calls = [block for block in reply.content if block.type == "tool_use"]
    messages.append({"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in reply.content]})
    results = [{"type": "tool_result", "tool_use_id": call.id, "content": "18 C"} for call in calls]
    messages.append({"role": "user", "content": results})
    final = ask(messages)
    refused = None
    try:
        ask(messages[:2])
    except anthropic.BadRequestError as error:
        refused = error.body["error"]["message"]
    said = "".join(block.text for block in reply.content if block.type == "text")
    return [said, reply.stop_reason, [[call.name, call.input] for call in calls], final.content[0].text, final.stop_reason, refused]


def openai_talk(streams):
    import openai

    client = openai.OpenAI(base_url=url, api_key="k", max_retries=0)
    function = {"name": "get_weather", "description": "Tells the weather", "parameters": SCHEMA}
    about = {"model": "strict-1", "tools": [{"type": "function", "function": function}]}

    def ask(messages):
        if not streams:
            choice = client.chat.completions.create(messages=messages, **about).choices[0]
            calls = [[call.id, call.function.name, call.function.arguments] for call in choice.message.tool_calls or []]
            return choice.message.content or "", calls, choice.finish_reason
        said, calls, reason = "", {}, None
        options = {"include_usage": True}
        for chunk in client.chat.completions.create(messages=messages, stream=True, stream_options=options, **about):
            for choice in chunk.choices:
                said += choice.delta.content or ""
                reason = choice.finish_reason or reason
                for piece in choice.delta.tool_calls or []:
                    call = calls.setdefault(piece.index, [None, None, ""])
                    call[0] = piece.id or call[0]
                    call[1] = piece.function.name or call[1]
                    call[2] += piece.function.arguments or ""
        return said, list(calls.values()), reason

    messages = [{"role": "user", "content": QUESTION}]
    said, calls, reason = ask(messages)
    asked = [{"id": i, "type": "function", "function": {"name": n, "arguments": a}} for i, n, a in calls]
    messages.append({"role": "assistant", "content": said, "tool_calls": asked})
    messages += [{"role": "tool", "tool_call_id": i, "content": "18 C"} for i, _, _ in calls]
    final, _, last = ask(messages)
    refused = None
    try:
        ask(messages[:2])
    except openai.BadRequestError as error:
        refused = error.body["message"]
    return [said, reason, [[n, json.loads(a)] for _, n, a in calls], final, last, refused]


def responses_talk(streams):
    import openai

    client = openai.OpenAI(base_url=url, api_key="k", max_retries=0)
    tool = {"type": "function", "name": "get_weather", "description": "Tells the weather", "parameters": SCHEMA, "strict": False}
    about = {"model": "strict-1", "tools": [tool], "store": False}

    def ask(items):
        if not streams:
            return client.responses.create(input=items, **about)
        for event in client.responses.create(input=items, stream=True, **about):
            if event.type == "response.completed":
                return event.response
        raise RuntimeError("the stream has no end")

    items = [{"role": "user", "content": QUESTION}]
    reply = ask(items)
    items += [item.model_dump(exclude_none=True) for item in reply.output]
    calls = [item for item in reply.output if item.type == "function_call"]
    broken = list(items)
    items += [{"type": "function_call_output", "call_id": call.call_id, "output": "18 C"} for call in calls]
    final = ask(items)
    refused = None
    try:
        ask(broken)
    except openai.BadRequestError as error:
        refused = error.body["message"]
    return [reply.output_text, reply.status, [[c.name, json.loads(c.arguments)] for c in calls], final.output_text, final.status, refused]


def ollama_talk(streams):
    import ollama

    client = ollama.Client(host=url)
    tools = [{"type": "function", "function": {"name": "get_weather", "description": "Tells the weather", "parameters": SCHEMA}}]

    def ask(messages):
        if not streams:
            reply = client.chat(model="strict-1", messages=messages, tools=tools)
            return reply.message.content or "", list(reply.message.tool_calls or []), reply.done_reason
        said, calls, reason = "", [], None
        for part in client.chat(model="strict-1", messages=messages, tools=tools, stream=True):
            said += part.message.content or ""
            calls += part.message.tool_calls or []
            reason = part.done_reason or reason
        return said, calls, reason

    messages = [{"role": "user", "content": QUESTION}]
    said, calls, reason = ask(messages)
    messages.append({"role": "assistant", "content": said, "tool_calls": calls})
    messages += [{"role": "tool", "tool_name": call.function.name, "content": "18 C"} for call in calls]
    final, _, last = ask(messages)
    refused = None
    try:
        ask(messages[:2])
    except ollama.ResponseError as error:
        refused = error.error
    made = [[call.function.name, dict(call.function.arguments)] for call in calls]
    return [said, reason, made, final, last, refused]


talk = {"anthropic": anthropic_talk, "openai": openai_talk, "openai-responses": responses_talk, "ollama": ollama_talk}[protocol]
json.dump([talk(streams=False), talk(streams=True)], sys.stdout)
