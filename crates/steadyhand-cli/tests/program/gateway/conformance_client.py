#!/usr/bin/env python3
"""The client legs of the MCP conformance suite, against the program itself.

The suite starts this script with the address of its server as the last argument, the scenario's name in
MCP_CONFORMANCE_SCENARIO and what the scenario tells a client in MCP_CONFORMANCE_CONTEXT. Everything is done by the
program `steadyhand` (its path is in STEADYHAND): a configuration is written, and its commands are run. This script is
only the person in front of it, who follows the program's advice and has a browser that says yes to everything.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request

PROGRAM = os.environ["STEADYHAND"]
URL = sys.argv[-1]
SCENARIO = os.environ["MCP_CONFORMANCE_SCENARIO"]
CONTEXT = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
VERSION = os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION", "")
LIMIT = 25
# A person who is sent to log in again and again gives up at some time.
LOGINS_MAX = 5
METADATA = "https://conformance-test.local/client-metadata.json"

place = tempfile.mkdtemp(prefix="steadyhand-conformance-")
environment = {
    "HOME": place,
    "PATH": os.environ.get("PATH", ""),
    "SUITE_SECRET": CONTEXT.get("client_secret", ""),
}


class Failed(Exception):
    pass


def quoted(value):
    # JSON's strings are TOML's, too.
    return json.dumps(value)


def configuration():
    protocol = "auto" if not VERSION else "legacy" if VERSION < "2026" else "modern"
    confirmed = "{ confirmed = true }" if SCENARIO == "sep-2322-client-request-state" else "{}"
    lines = [
        "[mcp.suite]",
        f"url = {quoted(URL)}",
        f"protocol = {quoted(protocol)}",
        "prefix = false",
        'start = { waits = ["0s"] }',
        f"elicitation = {{ accept = {confirmed} }}",
        "[mcp.suite.oauth]",
        f"client_metadata = {quoted(METADATA)}",
    ]
    if "client_id" in CONTEXT:
        lines.append(f"client_id = {quoted(CONTEXT['client_id'])}")
    if "client_secret" in CONTEXT:
        lines.append('client_secret = "${env:SUITE_SECRET}"')
    if SCENARIO == "auth/client-credentials-basic":
        lines.append('grant = "client_credentials"')
    return "\n".join(lines) + "\n"


def begin(*words, **how):
    return subprocess.Popen(
        [PROGRAM, *words], cwd=place, env=environment, text=True, stdin=how.get("stdin", subprocess.DEVNULL),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )


def ended(words, process):
    out, err = process.communicate(timeout=LIMIT)
    sys.stderr.write(f"$ steadyhand {' '.join(words)}\n{out}{err}")
    if process.returncode != 0:
        raise Failed(out + err)
    return out


def run(*words):
    return ended(words, begin(*words))


def log_in(scopes):
    words = ["mcp", "login", "suite"]
    for scope in scopes:
        words += ["--scope", scope]
    process = begin(*words)
    said = ""
    for line in process.stderr:
        said += line
        if line.strip().startswith("http"):
            # A browser: it follows the redirects, back to the program.
            urllib.request.urlopen(line.strip(), timeout=LIMIT).read()
    code = process.wait(timeout=LIMIT)
    sys.stderr.write(f"$ steadyhand {' '.join(words)}\n{said}")
    if code != 0:
        raise Failed(said)


def attended(what):
    """Does something, and logs in as often as the program says that somebody has to."""
    for _ in range(LOGINS_MAX):
        try:
            return what()
        except Failed as failed:
            advice = re.search(r"steadyhand mcp login suite((?: --scope [^\s;,]+)*)", str(failed))
            if advice is None:
                raise
            log_in(re.findall(r"--scope (\S+)", advice.group(1)))
    raise Failed("it wants a login again and again")


def tools():
    return [tool["name"] for tool in json.loads(run("tools", "list", "--json"))["tools"]]


def call(tool, arguments=None):
    return run("call", tool, "--args", json.dumps(arguments or {}))


def side_by_side(*names):
    calls = [(["call", name, "--args", "{}"], begin("call", name, "--args", "{}")) for name in names]
    for words, process in calls:
        ended(words, process)


class Gateway:
    """The program as an MCP server, for what is no call of a tool."""

    def __enter__(self):
        self.process = begin("mcp-stdio", stdin=subprocess.PIPE)
        self.id = 0
        about = {"name": "conformance", "version": "1"}
        self.ask("initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=about)
        return self

    def ask(self, method, **params):
        self.id += 1
        message = {"jsonrpc": "2.0", "id": self.id, "method": method, "params": params}
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()
        for line in self.process.stdout:
            answer = json.loads(line)
            if answer.get("id") == self.id:
                if "error" in answer:
                    raise Failed(f"{method}: {answer['error']}")
                return answer["result"]
        raise Failed(f"{method}: no answer")

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(timeout=LIMIT)


def everything():
    """One of each kind of request that has a name in its headers."""
    for tool in tools():
        call(tool)
    with Gateway() as gateway:
        for resource in gateway.ask("resources/list")["resources"]:
            gateway.ask("resources/read", uri=resource["uri"])
        for prompt in gateway.ask("prompts/list")["prompts"]:
            gateway.ask("prompts/get", name=prompt["name"])


def echo_a_schema():
    with Gateway() as gateway:
        for tool in gateway.ask("tools/list")["tools"]:
            if tool["name"] != "json_schema_echo":
                gateway.ask("tools/call", name="json_schema_echo", arguments={"schema": tool["inputSchema"]})


def scenario():
    if SCENARIO == "tools_call":
        call("add_numbers", {"a": 5, "b": 3})
    elif SCENARIO == "elicitation-sep1034-client-defaults":
        call("test_client_elicitation_defaults")
    elif SCENARIO == "sse-retry":
        call("test_reconnection")
    elif SCENARIO == "sep-2322-client-request-state":
        # One between the rounds of another: neither may hold what belongs to the other.
        side_by_side("test_mrtr_echo_state", "test_mrtr_unrelated")
        call("test_mrtr_no_state")
        call("test_mrtr_no_result_type")
    elif SCENARIO == "http-standard-headers":
        everything()
    elif SCENARIO == "http-custom-headers":
        for one in CONTEXT["toolCalls"]:
            # A null is no boolean, and would be refused by the tool's own schema: it is left out.
            given = {name: value for name, value in one["arguments"].items() if value is not None}
            call(one["name"], given)
    elif SCENARIO == "http-invalid-tool-headers":
        for tool in tools():
            call(tool, {"region": "us-west1"})
    elif SCENARIO == "json-schema-2020-12-preservation":
        echo_a_schema()
    elif SCENARIO.startswith("auth/"):
        # Calling may take more rights than listing.
        attended(lambda: run("mcp", "test", "suite"))
        for tool in attended(tools):
            attended(lambda: call(tool))
    else:
        # To connect and to list is all there is to do.
        tools()


try:
    with open(os.path.join(place, "steadyhand.toml"), "w") as file:
        file.write(configuration())
    scenario()
except Failed as failed:
    sys.exit(f"{SCENARIO}: {failed}")
finally:
    shutil.rmtree(place, ignore_errors=True)
