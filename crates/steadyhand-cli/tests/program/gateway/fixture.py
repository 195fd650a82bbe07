"""An MCP server on stdio for the conformance suite: the names are the suite's. It speaks both eras of the protocol, and
nothing but the standard library. With the word `legacy` it speaks the older one alone; with the word `odd` it says odd
but legal things wherever the protocol allows it."""

import json
import sys
import threading
import time

LEGACY_ONLY = "legacy" in sys.argv[1:]
IS_ODD = "odd" in sys.argv[1:]
# Where "@odd@" stands, this is written, to the letter: no parser of JSON gives all of it back.
ODD = r'{"big":12345678901234567890123,"exact":1.50,"zero":-0.0,"escaped":"\u00e9\/","none":null}'
META = "io.modelcontextprotocol/"
INFO = {"name": "conformance-fixture", "version": "1.0.0"}
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="

writing = threading.Lock()
asked = {}
listeners = {}
more_tools = []
more_prompts = []


def send(message):
    line = json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")).replace('"@odd@"', ODD)
    with writing:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


def text(words, **more):
    return {"content": [{"type": "text", "text": words}], **more}


class Refused(Exception):
    def __init__(self, code, message, data=None):
        self.error = {"code": code, "message": message, **({"data": data} if data is not None else {})}


class InputRequired(Exception):
    """The newer protocol's way to ask."""


class Request:
    def __init__(self, message, line):
        self.line = line
        self.id = message["id"]
        self.method = message["method"]
        self.params = message.get("params") or {}
        self.meta = self.params.get("_meta") or {}
        self.is_modern = META + "protocolVersion" in self.meta
        self.capabilities = self.meta.get(META + "clientCapabilities")

    def can(self, name):
        # Who greeted us long ago can do everything: only the newer protocol says it with each request.
        return self.capabilities is None or name in self.capabilities

    def tell(self, method, params):
        send({"method": method, "params": params})

    def log(self, words):
        if not self.is_modern or META + "logLevel" in self.meta:
            self.tell("notifications/message", {"level": "info", "logger": "fixture", "data": words})

    def progress(self, done, total):
        if "progressToken" in self.meta:
            params = {"progressToken": self.meta["progressToken"], "progress": done, "total": total}
            self.tell("notifications/progress", params)

    def ask(self, questions, state=None):
        """Lets the client answer: a dict of answers by the same keys."""
        if self.is_modern:
            given = self.params.get("inputResponses") or {}
            if all(isinstance(given.get(key), dict) for key in questions):
                return given
            result = {"resultType": "input_required", "inputRequests": questions}
            if state is not None:
                result["requestState"] = state
            raise InputRequired(result)
        answers = {}
        waiting = []
        for key, question in questions.items():
            done = threading.Event()
            # The gateway names a question of the older protocol by its id.
            asked[key] = (done, answers)
            send({"id": key, **question})
            waiting.append(done)
        for done in waiting:
            if not done.wait(30):
                raise Refused(-32603, "nobody answered")
        return answers

    def state(self):
        return self.params.get("requestState")


def elicit(message, properties, required=None):
    schema = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    return {"method": "elicitation/create", "params": {"message": message, "requestedSchema": schema}}


def sample(words, tokens=100):
    messages = [{"role": "user", "content": {"type": "text", "text": words}}]
    return {"method": "sampling/createMessage", "params": {"messages": messages, "maxTokens": tokens}}


ROOTS = {"method": "roots/list", "params": {}}
NAME = {"name": {"type": "string"}}

tools = {}


def tool(description, properties=None, required=None, schema=None):
    def put(function):
        own = schema or {"type": "object", "properties": properties or {}}
        if required:
            own["required"] = required
        tools[function.__name__] = (description, own, function)
        return function

    return put


@tool("Says one sentence")
def test_simple_text(request, args):
    return text("This is a simple text response for testing.")


@tool("Shows a picture")
def test_image_content(request, args):
    return {"content": [{"type": "image", "data": PNG, "mimeType": "image/png"}]}


@tool("Makes a sound")
def test_audio_content(request, args):
    return {"content": [{"type": "audio", "data": WAV, "mimeType": "audio/wav"}]}


@tool("Brings a resource along")
def test_embedded_resource(request, args):
    own = {"uri": "test://embedded-resource", "mimeType": "text/plain", "text": "This is an embedded resource content."}
    return {"content": [{"type": "resource", "resource": own}]}


@tool("A bit of everything")
def test_multiple_content_types(request, args):
    own = {"uri": "test://mixed-content-resource", "mimeType": "application/json", "text": '{"test":"data","value":123}'}
    return {
        "content": [
            {"type": "text", "text": "Multiple content types test:"},
            {"type": "image", "data": PNG, "mimeType": "image/png"},
            {"type": "resource", "resource": own},
        ]
    }


@tool("Writes to its log")
def test_tool_with_logging(request, args):
    for words in ["Tool execution started", "Tool processing data", "Tool execution completed"]:
        request.log(words)
        time.sleep(0.05)
    return text("It has logged three times.")


@tool("Writes to its log, if anyone wants to hear it")
def test_logging_tool(request, args):
    request.log("a word")
    return text("It may have logged something.")


@tool("Always fails")
def test_error_handling(request, args):
    return text("This tool intentionally returns an error for testing", isError=True)


@tool("Says how far it is")
def test_tool_with_progress(request, args):
    for done in [0, 50, 100]:
        request.progress(done, 100)
        time.sleep(0.05)
    return text("It is done.")


@tool("Says very much", {"count": {"type": "integer"}, "bytes": {"type": "integer"}})
def test_chatty(request, args):
    words = "x" * args["bytes"]
    for _ in range(args["count"]):
        request.log(words)
    return text("It has said everything.")


@tool("Lets a model answer", {"prompt": {"type": "string"}}, ["prompt"])
def test_sampling(request, args):
    answer = request.ask({"sampled": sample(args["prompt"])})["sampled"]
    words = (answer.get("content") or {}).get("text", json.dumps(answer))
    return text("LLM response: " + words)


@tool("Lets a person answer", {"message": {"type": "string"}}, ["message"])
def test_elicitation(request, args):
    fields = {
        "username": {"type": "string", "description": "User's response"},
        "email": {"type": "string", "description": "User's email address"},
    }
    answer = request.ask({"elicited": elicit(args["message"], fields, ["username", "email"])})["elicited"]
    return text("User response: " + json.dumps(answer))


def elicited(request, fields):
    answer = request.ask({"elicited": elicit("Please fill this in", fields)})["elicited"]
    return text(f"Elicitation completed: action={answer.get('action')}, content={json.dumps(answer.get('content'))}")


@tool("A form with defaults")
def test_elicitation_sep1034_defaults(request, args):
    return elicited(
        request,
        {
            "name": {"type": "string", "default": "John Doe"},
            "age": {"type": "integer", "default": 30},
            "score": {"type": "number", "default": 95.5},
            "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
            "verified": {"type": "boolean", "default": True},
        },
    )


@tool("A form with choices")
def test_elicitation_sep1330_enums(request, args):
    options = ["option1", "option2", "option3"]
    titled = [{"const": f"value{n}", "title": f"{word} Option"} for n, word in enumerate(["First", "Second", "Third"], 1)]
    choices = [{"const": f"value{n}", "title": f"{word} Choice"} for n, word in enumerate(["First", "Second", "Third"], 1)]
    return elicited(
        request,
        {
            "untitledSingle": {"type": "string", "enum": options},
            "titledSingle": {"type": "string", "oneOf": titled},
            "legacyEnum": {
                "type": "string",
                "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"],
            },
            "untitledMulti": {"type": "array", "items": {"type": "string", "enum": options}},
            "titledMulti": {"type": "array", "items": {"anyOf": choices}},
        },
    )


@tool("Needs a client that can sample")
def test_missing_capability(request, args):
    if not request.can("sampling"):
        raise Refused(-32021, "this needs sampling", {"requiredCapabilities": {"sampling": {}}})
    return text("The client can sample.")


@tool("Asks while it streams")
def test_streaming_elicitation(request, args):
    request.progress(1, 2)
    answer = request.ask({"name": elicit("What is your name?", NAME, ["name"])})["name"]
    return text("Hello, " + json.dumps(answer))


@tool("Asks for a name")
def test_input_required_result_elicitation(request, args):
    answer = request.ask({"user_name": elicit("What is your name?", NAME, ["name"])})["user_name"]
    return text(f"Hello, {(answer.get('content') or {}).get('name')}!")


@tool("Asks a model")
def test_input_required_result_sampling(request, args):
    answer = request.ask({"capital_question": sample("What is the capital of France?")})["capital_question"]
    return text((answer.get("content") or {}).get("text", ""))


@tool("Asks for folders")
def test_input_required_result_list_roots(request, args):
    return text(json.dumps(request.ask({"client_roots": ROOTS})["client_roots"]))


CONFIRM = {"confirm": elicit("Please confirm", {"ok": {"type": "boolean"}}, ["ok"])}


@tool("Keeps a state")
def test_input_required_result_request_state(request, args):
    request.ask(CONFIRM, "state-1")
    if request.is_modern and request.state() != "state-1":
        raise Refused(-32602, "the state is not ours")
    return text("state-ok")


@tool("Keeps a state that must not be changed")
def test_input_required_result_tampered_state(request, args):
    return test_input_required_result_request_state(request, args)


@tool("Asks three things at once")
def test_input_required_result_multiple_inputs(request, args):
    questions = {
        "user_name": elicit("What is your name?", NAME, ["name"]),
        "greeting": sample("Generate a greeting", 50),
        "client_roots": ROOTS,
    }
    return text(json.dumps(request.ask(questions, "state-many")))


@tool("Asks twice")
def test_input_required_result_multi_round(request, args):
    first = {"step1": elicit("Step 1: What is your name?", NAME, ["name"])}
    second = {"step2": elicit("Step 2: What is your favorite color?", {"color": {"type": "string"}}, ["color"])}
    if not request.is_modern:
        request.ask(first)
        return text(json.dumps(request.ask(second)))
    if request.state() == "round-2":
        return text(json.dumps(request.ask(second, "round-2")))
    request.ask(first, "round-1")
    result = {"resultType": "input_required", "inputRequests": second, "requestState": "round-2"}
    raise InputRequired(result)


@tool("Asks what the client can answer")
def test_input_required_result_capabilities(request, args):
    questions = {}
    if request.can("sampling"):
        questions["sampled"] = sample("Say something")
    if request.can("elicitation"):
        questions["elicited"] = elicit("Say something", NAME)
    return text(json.dumps(request.ask(questions)))


@tool("Brings a tool, or takes it away")
def test_trigger_tool_change(request, args):
    more_tools[:] = [] if more_tools else ["test_came_later"]
    changed("tools")
    return text("The tools have changed.")


@tool("Brings a prompt, or takes it away")
def test_trigger_prompt_change(request, args):
    more_prompts[:] = [] if more_prompts else ["test_came_later"]
    changed("prompts")
    return text("The prompts have changed.")


@tool("Says that a resource has changed", {"uri": {"type": "string"}}, ["uri"])
def test_touch_resource(request, args):
    updated(args["uri"])
    return text("It has changed.")


@tool(
    "One argument is repeated in a header",
    {"region": {"type": "string", "x-mcp-header": "Region"}},
)
def test_header_argument(request, args):
    return text(json.dumps(args))


@tool(
    "Tool with JSON Schema 2020-12 features",
    schema={
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
            }
        },
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": False,
    },
)
def json_schema_2020_12_tool(request, args):
    return text(json.dumps(args))


@tool("Gives back what it got, to the letter, and odd things beside it")
def test_odd_result(request, args):
    return {
        "content": [
            {"type": "text", "text": json.dumps(args), "x-vendor": {"big": 12345678901234567890123}},
            {"type": "hologram", "beams": [1, 2.50, 1e400 if False else 3]},
        ],
        "structuredContent": {"big": 12345678901234567890123, "small": 0.1},
        "x-vendor": [None, True],
        "_meta": {"vendor/key": 98765432109876543210},
    }


def odd_tools():
    """Definitions and tools that only a server in the odd mode has."""

    @tool("Says odd things on every way it has", EXTRA, schema=None)
    def odd_say(request, args):
        if "progressToken" in request.meta:
            token = request.meta["progressToken"]
            request.tell("notifications/progress", {"progressToken": token, "progress": 1, "message": "one", "x-vendor": "@odd@"})
        if not request.is_modern or META + "logLevel" in request.meta:
            request.tell("notifications/message", {"level": "error", "data": "@odd@", "x-vendor": "@odd@"})
        known = {"type": "text", "text": request.line, "annotations": {"priority": 0.5, "x-vendor": "@odd@"}, "x-vendor": "@odd@"}
        link = {"type": "resource_link", "uri": "test://odd", "x-vendor": "@odd@"}
        return {
            "content": [known, {"type": "hologram", "beams": "@odd@"}, link],
            "structuredContent": "@odd@",
            "x-vendor": "@odd@",
            "_meta": {"vendor/key": "@odd@"},
        }

    @tool("Asks an odd question")
    def odd_ask(request, args):
        question = elicit("Odd?", {"name": {"type": "string", "x-vendor": "@odd@"}})
        question["params"]["x-vendor"] = "@odd@"
        request.ask({"odd": question})
        return text(request.line if request.is_modern else raw_answers["odd"])


EXTRA = {"any": {"x-vendor": "@odd@"}}
VENDOR = {"x-vendor": "@odd@"}
ODD_TOOL = {
    **VENDOR,
    "title": "Odd",
    "execution": {"taskSupport": "optional", **VENDOR},
    "icons": [{"src": "https://example.com/i.png", "sizes": "48x48", **VENDOR}],
    "annotations": {"readOnlyHint": False, **VENDOR},
    "securitySchemes": [{"type": "noauth"}],
    "_meta": {"vendor/key": "@odd@"},
}
raw_answers = {}
if IS_ODD:
    odd_tools()


def user(content):
    return {"role": "user", "content": content}


def test_simple_prompt(request, args):
    return [user({"type": "text", "text": "This is a simple prompt for testing."})]


def test_prompt_with_arguments(request, args):
    words = f"Prompt with arguments: arg1='{args.get('arg1')}', arg2='{args.get('arg2')}'"
    return [user({"type": "text", "text": words})]


def test_prompt_with_embedded_resource(request, args):
    words = "Embedded resource content for testing."
    own = {"uri": args.get("resourceUri"), "mimeType": "text/plain", "text": words}
    return [
        user({"type": "resource", "resource": own}),
        user({"type": "text", "text": "Please process the embedded resource above."}),
    ]


def test_prompt_with_image(request, args):
    return [
        user({"type": "image", "data": PNG, "mimeType": "image/png"}),
        user({"type": "text", "text": "Please analyze the image above."}),
    ]


def test_input_required_result_prompt(request, args):
    fields = {"context": {"type": "string"}}
    answer = request.ask({"user_context": elicit("What context should the prompt use?", fields, ["context"])})
    return [user({"type": "text", "text": json.dumps(answer["user_context"])})]


ARGUMENTS = {
    test_prompt_with_arguments: ["arg1", "arg2"],
    test_prompt_with_embedded_resource: ["resourceUri"],
}
prompts = {
    function.__name__: function
    for function in [
        test_simple_prompt,
        test_prompt_with_arguments,
        test_prompt_with_embedded_resource,
        test_prompt_with_image,
        test_input_required_result_prompt,
    ]
}

RESOURCES = [
    {"uri": "test://static-text", "name": "static-text", "description": "A text", "mimeType": "text/plain"},
    {"uri": "test://static-binary", "name": "static-binary", "description": "A picture", "mimeType": "image/png"},
    {"uri": "test://watched-resource", "name": "watched", "description": "One that changes", "mimeType": "text/plain"},
]
TEMPLATES = [
    {
        "uriTemplate": "test://template/{id}/data",
        "name": "template",
        "description": "Data by id",
        "mimeType": "application/json",
    }
]


def read(uri):
    if uri == "test://static-binary":
        return {"uri": uri, "mimeType": "image/png", "blob": PNG}
    if uri == "test://static-text":
        return {"uri": uri, "mimeType": "text/plain", "text": "This is the content of the static text resource."}
    if uri == "test://watched-resource":
        return {"uri": uri, "mimeType": "text/plain", "text": "This changes."}
    if uri.startswith("test://template/") and uri.endswith("/data"):
        own = uri[len("test://template/") : -len("/data")]
        words = json.dumps({"id": own, "templateTest": True, "data": f"Data for ID: {own}"})
        return {"uri": uri, "mimeType": "application/json", "text": words}
    raise Refused(-32602, "Resource not found", {"uri": uri})


def changed(what):
    """Tells everyone who wants to hear it that a list has changed."""
    method = f"notifications/{what}/list_changed"
    if LEGACY_ONLY or not listeners:
        send({"method": method})
    for key, wanted in list(listeners.items()):
        if wanted.get(f"{what}ListChanged"):
            send({"method": method, "params": {"_meta": {META + "subscriptionId": key}}})


def updated(uri):
    method = "notifications/resources/updated"
    if LEGACY_ONLY or not listeners:
        send({"method": method, "params": {"uri": uri}})
    for key, wanted in list(listeners.items()):
        if uri in wanted.get("resourceSubscriptions", []):
            send({"method": method, "params": {"uri": uri, "_meta": {META + "subscriptionId": key}}})


CAPABILITIES = {
    "tools": {"listChanged": True},
    "prompts": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
    "completions": {},
    "logging": {},
}
EMPTY = {"type": "object", "properties": {}}
CACHED = ["server/discover", "tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read"]


def odd_answer(request):
    method, params = request.method, request.params
    if method == "prompts/list":
        return {"prompts": [{"name": "test_odd", "icons": [VENDOR], **VENDOR}]}
    if method == "prompts/get":
        block = {"type": "hologram", "text": request.line, **VENDOR}
        return {"messages": [{"role": "user", "content": block, **VENDOR}], **VENDOR}
    if method == "resources/list":
        return {"resources": [{"uri": "test://odd", "name": "test odd", "size": "@odd@", **VENDOR}]}
    if method == "resources/templates/list":
        return {"resourceTemplates": [{"uriTemplate": "test://odd/{id}", "name": "test odds", **VENDOR}]}
    if method == "resources/read":
        return {"contents": [{"uri": params["uri"], "text": request.line, "annotations": VENDOR, **VENDOR}], **VENDOR}
    if method == "completion/complete":
        return {"completion": {"values": [request.line[:2000]], "total": 1, **VENDOR}, **VENDOR}
    return None


def answer(request):
    method, params = request.method, request.params
    if IS_ODD and (odd := odd_answer(request)) is not None:
        return odd
    if method == "tools/list":
        listed = [{"name": n, "description": d, "inputSchema": s} for n, (d, s, _) in tools.items()]
        listed = [{**one, **ODD_TOOL} if one["name"].startswith("odd") else one for one in listed]
        return {"tools": listed + [{"name": n, "description": "Came later", "inputSchema": EMPTY} for n in more_tools]}
    if method == "tools/call":
        if params["name"] not in tools:
            raise Refused(-32602, f"Unknown tool: {params['name']}")
        return tools[params["name"]][2](request, params.get("arguments") or {})
    if method == "prompts/list":
        listed = []
        for name, function in prompts.items():
            own = [{"name": n, "description": n, "required": True} for n in ARGUMENTS.get(function, [])]
            listed.append({"name": name, "description": f"The prompt {name}", "arguments": own})
        return {"prompts": listed + [{"name": n, "description": "Came later"} for n in more_prompts]}
    if method == "prompts/get":
        if params["name"] not in prompts:
            raise Refused(-32602, f"Unknown prompt: {params['name']}")
        return {"messages": prompts[params["name"]](request, params.get("arguments") or {})}
    if method == "resources/list":
        return {"resources": RESOURCES}
    if method == "resources/templates/list":
        return {"resourceTemplates": TEMPLATES}
    if method == "resources/read":
        return {"contents": [read(params["uri"])]}
    if method == "completion/complete":
        start = params["argument"]["value"]
        values = [word for word in ["paris", "park", "party", "test"] if word.startswith(start)]
        return {"completion": {"values": values, "total": len(values), "hasMore": False}}
    if request.is_modern and method == "server/discover":
        return {"supportedVersions": ["2026-07-28"], "capabilities": CAPABILITIES}
    if not request.is_modern and method == "initialize":
        version = params.get("protocolVersion")
        known = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]
        version = version if version in known else known[0]
        return {"protocolVersion": version, "capabilities": CAPABILITIES, "serverInfo": INFO}
    if not request.is_modern and method in ["ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"]:
        return {}
    raise Refused(-32601, f"there is no method {method}")


def handle(message, line):
    request = Request(message, line)
    if request.is_modern and request.method == "subscriptions/listen" and not LEGACY_ONLY:
        wanted = request.params.get("notifications") or {}
        tag = {"_meta": {META + "subscriptionId": request.id}}
        send({"method": "notifications/subscriptions/acknowledged", "params": {"notifications": wanted, **tag}})
        listeners[request.id] = wanted
        return
    try:
        if LEGACY_ONLY and request.method == "server/discover":
            raise Refused(-32601, "there is no method server/discover")
        result = answer(request)
    except InputRequired as required:
        result = required.args[0]
    except Refused as refused:
        return send({"id": request.id, "error": refused.error})
    except Exception as error:
        return send({"id": request.id, "error": {"code": -32603, "message": repr(error)}})
    if request.is_modern:
        result = {"resultType": "complete", **result}
        if request.method in CACHED:
            result = {"ttlMs": 1000, "cacheScope": "public", **result}
        meta = {META + "serverInfo": INFO, **result.get("_meta", {})}
        result["_meta"] = meta
    send({"id": request.id, "result": result})


def main():
    for line in sys.stdin:
        try:
            message = json.loads(line)
        except ValueError:
            continue
        if "method" in message and "id" in message:
            threading.Thread(target=handle, args=[message, line.strip()], daemon=True).start()
        elif "method" in message:
            cancelled = (message.get("params") or {}).get("requestId")
            if message["method"] == "notifications/cancelled":
                listeners.pop(cancelled, None)
        elif "id" in message and message["id"] in asked:
            done, answers = asked.pop(message["id"])
            raw_answers[message["id"]] = line.strip()
            answers[message["id"]] = message.get("result") or {"error": message.get("error")}
            done.set()


main()
