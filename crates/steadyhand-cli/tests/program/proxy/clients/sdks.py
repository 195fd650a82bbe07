"""The makers' SDKs for Python send histories that died: each is asked for an answer, whole and as a stream.

Arguments: which client, and its base URL. Written: for each history and way, the answer or the refusal.
"""

import json
import sys

client_name, url = sys.argv[1:3]
QUESTION = "What is the weather in Rome and Oslo?"
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def anthropic_client():
    import anthropic

    client = anthropic.Anthropic(base_url=url, api_key="sk-ant-a-key-of-the-client", max_retries=0)
    tools = [{"name": "weather", "description": "Tells the weather", "input_schema": SCHEMA}]
    about = {"model": "strict-1", "max_tokens": 100, "tools": tools}
    call = lambda id: {"type": "tool_use", "id": id, "name": "weather", "input": {"city": "Rome"}}
    result = lambda id: {"type": "tool_result", "tool_use_id": id, "content": "18 C"}
    asked = {"role": "user", "content": QUESTION}
    histories = {
        "interrupted": [asked, {"role": "assistant", "content": [call("t1"), call("t2")]}, {"role": "user", "content": "Hello?"}],
        "orphan": [asked, {"role": "assistant", "content": "Well."}, {"role": "user", "content": [result("t9")]}],
        "twice": [asked, {"role": "assistant", "content": [call("t1")]}, {"role": "user", "content": [result("t1"), result("t1")]}],
        "bad id": [asked, {"role": "assistant", "content": [call("functions.weather:0")]}, {"role": "user", "content": [result("functions.weather:0")]}],
    }

    def ask(messages, streams):
        if not streams:
            return client.messages.create(messages=messages, **about).content[0].text
        with client.messages.stream(messages=messages, **about) as stream:
            return "".join(stream.text_stream)

    return histories, ask, lambda error: (error.status_code, error.body["error"]["message"])


def openai_client():
    import openai

    client = openai.OpenAI(base_url=url, api_key="sk-a-key-of-the-client", max_retries=0)
    function = {"name": "weather", "description": "Tells the weather", "parameters": SCHEMA}
    about = {"model": "strict-1", "tools": [{"type": "function", "function": function}]}
    call = lambda id: {"id": id, "type": "function", "function": {"name": "weather", "arguments": '{"city": "Rome"}'}}
    said = lambda *calls: {"role": "assistant", "content": None, "tool_calls": list(calls)}
    result = lambda id: {"role": "tool", "tool_call_id": id, "content": "18 C"}
    asked = {"role": "user", "content": QUESTION}
    histories = {
        "interrupted": [asked, said(call("c1"), call("c2")), result("c1"), {"role": "user", "content": "Hello?"}],
        "orphan": [asked, result("c9"), {"role": "user", "content": "Hello?"}],
        "image between": [asked, said(call("c1"), call("c2")), result("c1"), {"role": "user", "content": "Look."}, result("c2")],
    }

    def ask(messages, streams):
        if not streams:
            return client.chat.completions.create(messages=messages, **about).choices[0].message.content
        chunks = client.chat.completions.create(messages=messages, stream=True, **about)
        return "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)

    return histories, ask, lambda error: (error.status_code, error.body["message"])


def responses_client():
    import openai

    client = openai.OpenAI(base_url=url, api_key="sk-a-key-of-the-client", max_retries=0)
    tool = {"type": "function", "name": "weather", "description": "Tells the weather", "parameters": SCHEMA, "strict": False}
    about = {"model": "strict-1", "tools": [tool], "store": False}
    asked = {"role": "user", "content": QUESTION}
    call = {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": '{"city": "Rome"}'}
    output = {"type": "function_call_output", "call_id": "c9", "output": "18 C"}
    histories = {"interrupted": [asked, call, {"role": "user", "content": "Hello?"}], "orphan": [asked, output]}

    def ask(items, streams):
        if not streams:
            return client.responses.create(input=items, **about).output_text
        for event in client.responses.create(input=items, stream=True, **about):
            if event.type == "response.completed":
                return event.response.output_text
        raise RuntimeError("the stream has no end")

    return histories, ask, lambda error: (error.status_code, error.body["message"])


def ollama_client():
    import ollama

    client = ollama.Client(host=url)
    tools = [{"type": "function", "function": {"name": "weather", "description": "Tells the weather", "parameters": SCHEMA}}]
    asked = {"role": "user", "content": QUESTION}
    call = {"function": {"name": "weather", "arguments": {"city": "Rome"}}}
    histories = {"interrupted": [asked, {"role": "assistant", "content": "", "tool_calls": [call]}, {"role": "user", "content": "Hello?"}]}

    def ask(messages, streams):
        if not streams:
            return client.chat(model="strict-1", messages=messages, tools=tools).message.content
        parts = client.chat(model="strict-1", messages=messages, tools=tools, stream=True)
        return "".join(part.message.content or "" for part in parts)

    return histories, ask, lambda error: (error.status_code, error.error)


def langchain_client(of):
    from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

    if of == "anthropic":
        from langchain_anthropic import ChatAnthropic

        model = ChatAnthropic(model="strict-1", base_url=url, api_key="sk-ant-a-key-of-the-client", max_retries=0, max_tokens=100)
    else:
        from langchain_openai import ChatOpenAI

        model = ChatOpenAI(model="strict-1", base_url=url, api_key="sk-a-key-of-the-client", max_retries=0)
    model = model.bind_tools([{"name": "weather", "description": "Tells the weather", "parameters": SCHEMA}])
    call = lambda id: {"name": "weather", "args": {"city": "Rome"}, "id": id}
    asked = HumanMessage(QUESTION)
    histories = {
        "interrupted": [asked, AIMessage("", tool_calls=[call("c1"), call("c2")]), ToolMessage("18 C", tool_call_id="c1"), HumanMessage("Hello?")],
        "orphan": [asked, AIMessage("Well."), ToolMessage("18 C", tool_call_id="c9"), HumanMessage("Hello?")],
    }

    def ask(messages, streams):
        if not streams:
            return model.invoke(messages).text
        return "".join(chunk.text for chunk in model.stream(messages))

    def refusal(error):
        body = error.body.get("error", error.body)
        return error.status_code, body["message"]

    return histories, ask, refusal


clients = {
    "anthropic": anthropic_client,
    "openai": openai_client,
    "openai-responses": responses_client,
    "ollama": ollama_client,
    "langchain-anthropic": lambda: langchain_client("anthropic"),
    "langchain-openai": lambda: langchain_client("openai"),
}
histories, ask, refusal = clients[client_name]()
told = []
for name, messages in histories.items():
    for streams in (False, True):
        row = {"history": name, "streams": streams}
        try:
            row["answer"] = ask(messages, streams)
        except Exception as error:
            if not hasattr(error, "status_code"):
                raise
            row["status"], row["message"] = refusal(error)
        told.append(row)
json.dump(told, sys.stdout)
