"""Sets our repair beside LiteLLM's and Pydantic AI's on the same broken conversations; prints a table.

Each gets a conversation in its own shape and sends it to a server on this machine that stands for Anthropic: what
arrives there is judged by our strict Anthropic. Words that were said by users or tools and are not there any more
count as lost. See `repair_comparison`.
"""

import asyncio
import copy
import json
import logging
import os
import random
import re
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version

# LiteLLM would fetch a price list otherwise.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import anthropic
import litellm
from pydantic_ai import messages as pydantic
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.tools import ToolDefinition

JUDGE = sys.argv[1]
RANDOM = 300
MODEL = "claude-sonnet-4-5"
SCHEMA = {"type": "object", "properties": {}}
TOOL = {"name": "look", "description": "Looks", "input_schema": SCHEMA}
litellm.modify_params = True
litellm.suppress_debug_info = True
logging.disable(logging.CRITICAL)


class Listener(BaseHTTPRequestHandler):
    """Stands for Anthropic: takes everything and remembers the last messages."""

    protocol_version = "HTTP/1.1"
    heard = None

    def do_POST(self):
        Listener.heard = json.loads(self.rfile.read(int(self.headers["content-length"])))["messages"]
        usage = {"input_tokens": 1, "output_tokens": 1}
        answer = {"id": "msg_1", "type": "message", "role": "assistant", "model": MODEL, "stop_reason": "end_turn"}
        answer |= {"content": [{"type": "text", "text": "ok"}], "stop_sequence": None, "usage": usage}
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Listener)
threading.Thread(target=server.serve_forever, daemon=True).start()
ADDRESS = f"http://127.0.0.1:{server.server_port}"


def user(text):
    return {"user": text}


def says(text):
    return {"ai": text, "calls": []}


def calls(*ids, args=None, name="look"):
    return {"ai": "", "calls": [{"id": i, "name": name, "args": {} if args is None else args} for i in ids]}


def result(id, text):
    return {"result": id, "text": text}


CLASSES = [
    ("nothing wrong", [user("u1x"), calls("a", "b"), result("a", "r1x"), result("b", "r2x"), says("a1x"), user("u2x")]),
    ("a result is missing", [user("u1x"), calls("a"), user("u2x")]),
    ("one of two results is missing", [user("u1x"), calls("a", "b"), result("a", "r1x"), user("u2x")]),
    ("the history ends with a call", [user("u1x"), calls("a")]),
    ("a result stands behind the user's words", [user("u1x"), calls("a"), user("u2x"), result("a", "r1x")]),
    ("the user's words stand between two results", [user("u1x"), calls("a", "b"), result("a", "r1x"), user("u2x"), result("b", "r2x")]),
    ("a result comes after the model went on", [user("u1x"), calls("a"), user("u2x"), says("a1x"), result("a", "r1x"), user("u3x")]),
    ("a result without a call", [user("u1x"), says("a1x"), result("z", "r1x"), user("u2x")]),
    ("the history begins with a result", [result("z", "r1x"), user("u1x")]),
    ("the same result twice", [user("u1x"), calls("a"), result("a", "r1x"), result("a", "r1x"), user("u2x")]),
    ("two different results of one call", [user("u1x"), calls("a"), result("a", "r1x"), result("a", "r2x"), user("u2x")]),
    ("two calls with one id", [user("u1x"), calls("a", "a"), result("a", "r1x"), result("a", "r2x"), user("u2x")]),
    ("ids that Anthropic refuses", [user("u1x"), calls("functions.look:0"), result("functions.look:0", "r1x"), user("u2x")]),
    ("arguments that broke off", [user("u1x"), calls("a", args='{"at": "a1x'), user("u2x")]),
    ("a call without a name", [user("u1x"), calls("a", name=""), result("a", "r1x"), user("u2x")]),
    ("the user said nothing", [user(""), says("a1x"), user("u2x")]),
]


def broken_at_random(seed):
    dice = random.Random(seed)
    steps, count = [], 0
    for _ in range(dice.randint(1, 4)):
        steps.append(user(f"u{count}x"))
        for _ in range(dice.randint(0, 2)):
            ids = [f"toolu{count}n{n}" for n in range(dice.randint(1, 3))]
            count += 1
            steps.append(calls(*ids))
            steps += [result(id, f"r{count}{n}x") for n, id in enumerate(ids)]
        steps.append(says(f"a{count}x"))
        count += 1
    steps.append(user(f"u{count}x"))
    for _ in range(dice.randint(1, 4)):
        kind, at, to = dice.randrange(4), dice.randrange(len(steps)), dice.randrange(len(steps))
        if kind == 0 and len(steps) > 1:
            steps.pop(at)
        elif kind == 1:
            steps.insert(to, copy.deepcopy(steps[at]))
        elif kind == 2:
            steps[at], steps[to] = steps[to], steps[at]
        elif kind == 3:
            steps = steps[at // 2 :]
    return steps


def as_anthropic(steps):
    messages = []
    for step in steps:
        if "user" in step:
            messages.append({"role": "user", "content": step["user"]})
        elif "ai" in step:
            text = [{"type": "text", "text": step["ai"]}] if step["ai"] else []
            uses = [{"type": "tool_use", "id": c["id"], "name": c["name"], "input": c["args"]} for c in step["calls"]]
            messages.append({"role": "assistant", "content": text + uses})
        else:
            block = {"type": "tool_result", "tool_use_id": step["result"], "content": step["text"]}
            messages.append({"role": "user", "content": [block]})
    return messages


def as_openai(steps):
    messages = []
    for step in steps:
        if "user" in step:
            messages.append({"role": "user", "content": step["user"]})
        elif "ai" in step:
            message = {"role": "assistant", "content": step["ai"] or None}
            if step["calls"]:
                text = lambda args: args if isinstance(args, str) else json.dumps(args)
                message["tool_calls"] = [
                    {"id": c["id"], "type": "function", "function": {"name": c["name"], "arguments": text(c["args"])}}
                    for c in step["calls"]
                ]
            messages.append(message)
        else:
            messages.append({"role": "tool", "tool_call_id": step["result"], "content": step["text"]})
    return messages


def as_pydantic(steps):
    names = {c["id"]: c["name"] for step in steps if "ai" in step for c in step["calls"]}
    messages = []
    for step in steps:
        if "user" in step:
            messages.append(pydantic.ModelRequest(parts=[pydantic.UserPromptPart(content=step["user"])]))
        elif "ai" in step:
            parts = [pydantic.TextPart(content=step["ai"])] if step["ai"] else []
            parts += [pydantic.ToolCallPart(tool_name=c["name"], args=c["args"], tool_call_id=c["id"]) for c in step["calls"]]
            messages.append(pydantic.ModelResponse(parts=parts))
        else:
            name = names.get(step["result"], "look")
            part = pydantic.ToolReturnPart(tool_name=name, content=step["text"], tool_call_id=step["result"])
            messages.append(pydantic.ModelRequest(parts=[part]))
    return messages


def by_litellm(steps):
    tool = {"type": "function", "function": {"name": "look", "description": "Looks", "parameters": SCHEMA}}
    litellm.completion(
        model=f"anthropic/{MODEL}",
        messages=as_openai(steps),
        tools=[tool],
        max_tokens=9,
        api_base=ADDRESS,
        api_key="none",
        num_retries=0,
        timeout=20,
    )


def by_pydantic(steps):
    async def send():
        client = anthropic.AsyncAnthropic(api_key="none", base_url=ADDRESS, max_retries=0, timeout=20)
        model = AnthropicModel(MODEL, provider=AnthropicProvider(anthropic_client=client))
        tool = ToolDefinition(name="look", description="Looks", parameters_json_schema=SCHEMA)
        repaired = pydantic.repair_messages(as_pydantic(steps))
        await model.request(repaired, None, ModelRequestParameters(function_tools=[tool]))
        await client.close()

    asyncio.run(send())


def judged(conversations):
    lines = []
    for messages in conversations:
        request = {"model": MODEL, "max_tokens": 9, "tools": [TOOL], "messages": messages}
        lines.append(json.dumps(request))
    answer = subprocess.run([JUDGE], input="\n".join(lines), text=True, capture_output=True, check=True)
    return [json.loads(line) for line in answer.stdout.splitlines()]


def words(value):
    if isinstance(value, str):
        return set(re.findall(r"\b[ur]\d+x\b", value))
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    return set().union(*map(words, inner))


def verdict(said, messages, refused):
    lost = sorted(words(said) - words(messages))
    if refused:
        return "refused"
    return f"accepted, {', '.join(lost)} lost" if lost else "accepted"


def attempt(repairer, steps):
    Listener.heard = None
    try:
        repairer(copy.deepcopy(steps))
    except Exception as error:
        # What it makes of the answer does not matter here.
        if Listener.heard is None:
            return f"fails: {type(error).__name__}"
    return Listener.heard


def all_verdicts(conversations):
    """For each conversation: as it is, LiteLLM, Pydantic AI, Steadyhand."""
    own = judged([as_anthropic(steps) for steps in conversations])
    columns = [["accepted" if not one["refused"] else "refused" for one in own]]
    for repairer in (by_litellm, by_pydantic):
        results = [attempt(repairer, steps) for steps in conversations]
        again = [attempt(repairer, steps) for steps in conversations]
        sane = [one if isinstance(one, list) else [] for one in results]
        column = []
        for steps, one, twin, judgement in zip(conversations, results, again, judged(sane), strict=True):
            text = one if isinstance(one, str) else verdict(steps, one, judgement["refused"])
            column.append(text if one == twin else text + ", differs each time")
        columns.append(column)
    ours = [
        verdict(steps, one["repaired"]["messages"], one["repaired_refused"])
        for steps, one in zip(conversations, own, strict=True)
    ]
    return list(zip(*columns, ours, strict=True))


def main():
    heads = ["", "as it is", f"LiteLLM {version('litellm')}", f"Pydantic AI {version('pydantic-ai-slim')}", "Steadyhand"]
    print("| " + " | ".join(heads) + " |")
    print("| --- " * len(heads) + "|")
    for (name, _), row in zip(CLASSES, all_verdicts([steps for _, steps in CLASSES]), strict=True):
        print(f"| {name} | " + " | ".join(row) + " |")
    rows = all_verdicts([broken_at_random(seed) for seed in range(RANDOM)])
    counted = []
    for column in zip(*rows, strict=True):
        accepted = sum(one.startswith("accepted") for one in column)
        lost = sum("lost" in one for one in column)
        counted.append(f"{accepted} accepted" + (f", {lost} with losses" if lost else ""))
    print(f"| **{RANDOM} broken at random** | " + " | ".join(counted) + " |")


main()
