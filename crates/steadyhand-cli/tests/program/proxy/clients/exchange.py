"""One scenario with an SDK for Python: a list, a conversation with tools, whole and as a stream, a count, a refusal.

Arguments: which client, and its base URL. Written: what the client was given at each step, and the bytes that came.
"""

import json
import sys

client_name, url = sys.argv[1:3]
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
HEADERS = ["content-type", "request-id", "x-request-id"]
came = []


def recorder(httpx):
    """A transport of this version of httpx that keeps what comes, byte for byte."""

    class Tee(httpx.SyncByteStream):
        def __init__(self, stream, kept):
            self.stream, self.kept = stream, kept

        def __iter__(self):
            for piece in self.stream:
                self.kept["bytes"] += piece
                yield piece

        def close(self):
            self.stream.close()

    class Recorder(httpx.HTTPTransport):
        def handle_request(self, request):
            response = super().handle_request(request)
            headers = {name: response.headers.get(name) for name in HEADERS}
            kept = {"status": response.status_code, "headers": headers, "bytes": b""}
            came.append(kept)
            return httpx.Response(response.status_code, headers=response.headers, stream=Tee(response.stream, kept), extensions=response.extensions)

    return Recorder()


def plain(value):
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    return value


def anthropic_steps(client):
    tools = [{"name": "weather", "description": "Tells the weather", "input_schema": SCHEMA}]
    messages = [
        {"role": "user", "content": "Weather in Rome?"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Rome"}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "18 °C"}]},
    ]
    about = {"model": "claude-sonnet-4-5", "max_tokens": 100, "tools": tools, "messages": messages}

    def stream():
        with client.messages.stream(**about) as events:
            return list(events)

    def refused():
        return client.messages.create(model="refused", max_tokens=1, messages=[{"role": "user", "content": "Hi"}])

    return [lambda: client.messages.create(**about), stream, refused]


def anthropic_client():
    import anthropic, httpx2 as httpx

    client = anthropic.Anthropic(base_url=url, api_key="sk-ant-a-key", max_retries=0, http_client=httpx.Client(transport=recorder(httpx)))
    messages = [{"role": "user", "content": "Hi"}]
    count = lambda: client.messages.count_tokens(model="claude-sonnet-4-5", messages=messages)
    return [lambda: client.models.list().data, count, *anthropic_steps(client)]


def vertex_client():
    import anthropic, httpx2 as httpx

    client = anthropic.AnthropicVertex(base_url=url + "/v1", project_id="p", region="us-east5", access_token="a-token", max_retries=0, http_client=httpx.Client(transport=recorder(httpx)))
    return anthropic_steps(client)


def openai_client():
    import httpx, openai

    client = openai.OpenAI(base_url=url + "/v1", api_key="sk-a-key", max_retries=0, http_client=httpx.Client(transport=recorder(httpx)))
    return chat_steps(client) + responses_steps(client)


def azure_client():
    import httpx, openai

    client = openai.AzureOpenAI(azure_endpoint=url, api_version="2024-10-21", api_key="a-key", max_retries=0, http_client=httpx.Client(transport=recorder(httpx)))
    return chat_steps(client)[1:]


def chat_steps(client):
    function = {"name": "weather", "description": "Tells the weather", "parameters": SCHEMA}
    call = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Rome"}'}}
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Weather in Rome?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "18 °C"},
    ]
    about = {"model": "gpt-5", "tools": [{"type": "function", "function": function}], "messages": messages}
    create = client.chat.completions.create
    stream = lambda: list(create(stream=True, stream_options={"include_usage": True}, **about))
    refused = lambda: create(model="refused", messages=[{"role": "user", "content": "Hi"}])
    return [lambda: client.models.list().data, lambda: create(**about), stream, refused]


def responses_steps(client):
    items = [
        {"role": "user", "content": "Weather in Rome?"},
        {"type": "function_call", "call_id": "call_1", "name": "weather", "arguments": '{"city": "Rome"}'},
        {"type": "function_call_output", "call_id": "call_1", "output": "18 °C"},
    ]
    about = {"model": "gpt-5", "input": items, "store": False}
    create = client.responses.create
    return [lambda: create(**about), lambda: list(create(stream=True, **about))]


def ollama_client():
    import httpx, ollama

    client = ollama.Client(host=url, transport=recorder(httpx))
    call = {"function": {"name": "weather", "arguments": {"city": "Rome"}}}
    messages = [
        {"role": "user", "content": "Weather in Rome?"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_name": "weather", "content": "18 °C"},
    ]
    about = {"model": "qwen3", "messages": messages}
    refused = lambda: client.chat(model="refused", messages=[{"role": "user", "content": "Hi"}])
    return [client.list, lambda: client.chat(**about), lambda: list(client.chat(stream=True, **about)), refused]


def gemini_client():
    import httpx2 as httpx
    from google import genai
    from google.genai import types

    options = types.HttpOptions(base_url=url, client_args={"transport": recorder(httpx)})
    client = genai.Client(api_key="a-key", http_options=options)
    contents = [
        {"role": "user", "parts": [{"text": "Weather in Rome?"}]},
        {"role": "model", "parts": [{"function_call": {"name": "weather", "args": {"city": "Rome"}}, "thought_signature": b"abc"}]},
        {"role": "user", "parts": [{"function_response": {"name": "weather", "response": {"output": "18 °C"}}}]},
    ]
    about = {"model": "gemini-2.5-pro", "contents": contents}
    # A client that nobody refers to is closed, so none of these keeps `client.models` alone.
    count = lambda: client.models.count_tokens(**about)
    stream = lambda: list(client.models.generate_content_stream(**about))
    refused = lambda: client.models.generate_content(model="refused", contents="Hi")
    return [count, lambda: client.models.generate_content(**about), stream, refused]


def bedrock_client():
    import boto3
    from botocore.config import Config

    # It sends an API key over https only, and signs what it sends over http.
    keys = {"aws_access_key_id": "AKID", "aws_secret_access_key": "secret", "region_name": "us-east-1"}
    client = boto3.client("bedrock-runtime", endpoint_url=url, config=Config(retries={"total_max_attempts": 1}), **keys)
    messages = [
        {"role": "user", "content": [{"text": "Weather in Rome?"}]},
        {"role": "assistant", "content": [{"toolUse": {"toolUseId": "t1", "name": "weather", "input": {"city": "Rome"}}}]},
        {"role": "user", "content": [{"toolResult": {"toolUseId": "t1", "content": [{"text": "18 °C"}]}}]},
    ]
    spec = {"name": "weather", "description": "Tells the weather", "inputSchema": {"json": SCHEMA}}
    about = {"modelId": "us.anthropic.claude-sonnet-4-5-v1:0", "messages": messages, "toolConfig": {"tools": [{"toolSpec": spec}]}}
    body = {"anthropic_version": "bedrock-2023-05-31", "max_tokens": 10, "messages": [{"role": "user", "content": "Hi"}]}

    def answer(given):
        given.pop("ResponseMetadata")
        return given

    def invoke():
        given = client.invoke_model(modelId=about["modelId"], body=json.dumps(body))
        return json.loads(given["body"].read())

    stream = lambda: list(client.converse_stream(**about)["stream"])
    refused = lambda: client.converse(modelId="refused", messages=messages[:1])
    return [lambda: answer(client.converse(**about)), stream, invoke, refused]


steps = {
    "anthropic": anthropic_client,
    "vertex": vertex_client,
    "openai": openai_client,
    "azure": azure_client,
    "ollama": ollama_client,
    "gemini": gemini_client,
    "bedrock": bedrock_client,
}[client_name]()
given = []
for step in steps:
    try:
        given.append(plain(step()))
    except Exception as error:
        given.append({"error": type(error).__name__, "says": str(error).replace(url, "URL")})
for kept in came:
    kept["bytes"] = kept["bytes"].hex()
print(json.dumps({"given": given, "came": came}, default=str))
