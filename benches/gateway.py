"""Starts the systems of `run-gateway`, lets `gateway` measure them in turns, prints tables."""

import atexit
import json
import os
import pathlib
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = pathlib.Path(__file__).parent
BENCH = str((pathlib.Path(os.environ.get("CARGO_TARGET_DIR", HERE / "target")) / "release/gateway").resolve())
OURS = str((HERE / "../target/release/steadyhand").resolve())
PEERS = HERE / "target/gateway-peers"
FOLDER = pathlib.Path(tempfile.mkdtemp(prefix="gateway-"))
started = []
# How many rounds of `drive` fill the history.
FILL = 4


def port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def start(command, address, env=None, folder=None):
    log = open(FOLDER / f"{len(started)}.log", "w")
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=folder or FOLDER,
                               env={**os.environ, **(env or {})}, start_new_session=True)
    started.append(process)
    if address:
        reachable(address, process, log.name)
    return process


def reachable(address, process, log):
    until = time.monotonic() + 60
    host, number = address.split(":")
    while time.monotonic() < until and process.poll() is None:
        try:
            socket.create_connection((host, int(number)), 1).close()
            return
        except OSError:
            time.sleep(0.02)
    raise SystemExit(f"{process.args} does not listen on {address}:\n{pathlib.Path(log).read_text()[-2000:]}")


def stop(process):
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


atexit.register(lambda: [stop(process) for process in started])


def bench(what, systems):
    file = FOLDER / f"{what}.json"
    file.write_text(json.dumps(systems))
    out = subprocess.run([BENCH, what, str(file)], stdout=subprocess.PIPE, check=True, timeout=1800)
    return json.loads(out.stdout)


def steadyhand(name, server, protocol=None):
    """A gateway of ours with one server behind it, everything on."""
    folder = FOLDER / f"ours-{name}"
    folder.mkdir(exist_ok=True)
    lines = ["[mcp.up]", "prefix = false", *server]
    if protocol:
        lines.append(f'protocol = "{protocol}"')
    (folder / "steadyhand.toml").write_text("\n".join(lines) + "\n")
    address = f"127.0.0.1:{port()}"
    process = start([OURS, "serve", "--listen", address], address, {"HOME": str(folder)}, folder)
    return address, process


def peers(upstream):
    """What registries carry, each in front of the same server. Name, address, path, process, how much slower."""
    python, found = PEERS / "py/bin", []
    rust = PEERS / "cargo/bin/mcp-proxy"
    if rust.exists():
        address = f"127.0.0.1:{port()}"
        host, number = address.split(":")
        config = FOLDER / "mcp-proxy.toml"
        config.write_text(f'[proxy]\nname = "bench"\n[proxy.listen]\nhost = "{host}"\nport = {number}\n'
                          f'[[backends]]\nname = "up"\ntransport = "http"\nurl = "http://{upstream}/mcp"\n')
        # It would log every request.
        process = start([rust, "--config", config], address, {"RUST_LOG": "error"})
        found.append(("mcp-proxy 0.6.0 (Rust)", address, "/", process, "up/echo", 1))
    if (python / "fastmcp").exists():
        address = f"127.0.0.1:{port()}"
        script = FOLDER / "fastmcp_proxy.py"
        script.write_text("from fastmcp.server import create_proxy\n"
                          f'create_proxy("http://{upstream}/mcp", name="bench").run(transport="http", host="127.0.0.1", '
                          f'port={address.split(":")[1]}, show_banner=False)\n')
        found.append(("FastMCP proxy (PyPI)", address, "/mcp", start([python / "python", script], address), "echo", 100))
    if (PEERS / "contextforge/bin/mcpgateway").exists():
        found.append(contextforge(upstream))
    return found


def contextforge(upstream):
    """ContextForge on SQLite, its rate limit and its checks of addresses off, who calls `/mcp` not asked who they are."""
    python, address = PEERS / "contextforge/bin", f"127.0.0.1:{port()}"
    key, password = secrets.token_urlsafe(48), secrets.token_urlsafe(48)
    env = {"AUTH_REQUIRED": "true", "MCP_REQUIRE_AUTH": "false", "MCPGATEWAY_UI_ENABLED": "false", "CACHE_TYPE": "memory",
           "DATABASE_URL": f"sqlite:///{FOLDER}/contextforge.db", "LOG_LEVEL": "ERROR", "SSRF_PROTECTION_ENABLED": "false",
           "RATE_LIMITING_ENABLED": "false", "JWT_SECRET_KEY": key, "AUTH_ENCRYPTION_SECRET": password,
           "PLATFORM_ADMIN_PASSWORD": password, "BASIC_AUTH_PASSWORD": password, "DEFAULT_USER_PASSWORD": password}
    process = start([python / "mcpgateway", "--host", "127.0.0.1", "--port", address.split(":")[1]], address, env)
    made = subprocess.run([python / "python", "-m", "mcpgateway.utils.create_jwt_token", "--username", "admin@example.com", "--admin",
                           "--exp", "60", "--secret", key], stdout=subprocess.PIPE, env={**os.environ, **env}, cwd=FOLDER, check=True)
    server = {"name": "up", "url": f"http://{upstream}/mcp", "transport": "STREAMABLEHTTP", "visibility": "public"}
    token = made.stdout.decode().split()[-1]
    request = urllib.request.Request(f"http://{address}/gateways", json.dumps(server).encode(),
                                     {"content-type": "application/json", "authorization": f"Bearer {token}"})
    urllib.request.urlopen(request, timeout=60).read()
    return "ContextForge (PyPI)", address, "/mcp/", process, "up-echo", 200


def stdio_peers():
    child, found = [BENCH, "stdio", "2"], []
    if (PEERS / "py-proxy/bin/mcp-proxy").exists():
        address = f"127.0.0.1:{port()}"
        command = [PEERS / "py-proxy/bin/mcp-proxy", "--host", "127.0.0.1", "--port", address.split(":")[1], "--pass-environment", "--", *child]
        found.append(("mcp-proxy (PyPI), stdio", address, "/mcp", start(command, address), "echo", 20))
    node = PEERS / "npm/node_modules/.bin/mcp-proxy"
    if node.exists():
        address = f"127.0.0.1:{port()}"
        command = [node, "--host", "127.0.0.1", "--port", address.split(":")[1], "--", *child]
        found.append(("mcp-proxy 6.7.19 (npm), stdio", address, "/mcp", start(command, address), "echo", 10))
    return found


def system(name, address, process=None, path="/mcp", echo="echo", modern=False, slower=1):
    return {"name": name, "address": address, "path": path, "pid": process and process.pid, "echo": echo,
            "modern": modern, "slower": slower}


def table(rows, columns):
    print("| " + " | ".join(columns) + " |")
    print("| --- |" + " ---: |" * (len(columns) - 1))
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print()


def number(value, digits=0):
    return "–" if value is None else f"{value:,.{digits}f}"


def growth():
    """The same call where there is more of everything: tools, servers, rows in the history."""
    upstream, many = f"127.0.0.1:{port()}", f"127.0.0.1:{port()}"
    start([BENCH, "upstream", upstream, "2"], upstream)
    start([BENCH, "upstream", many, "1000"], many)
    few = steadyhand("few", [f'url = "http://{upstream}/mcp"'])
    tools = steadyhand("tools", [f'url = "http://{many}/mcp"'])
    more = [line for number in range(20) for line in (f"[mcp.other{number}]", f'url = "http://{upstream}/mcp"')]
    servers = steadyhand("servers", [f'url = "http://{upstream}/mcp"', *more])
    rows = steadyhand("rows", [f'url = "http://{upstream}/mcp"'])
    time.sleep(3)
    for _ in range(FILL):
        bench("drive", [system("rows", *rows)])
    kept = calls_kept(rows[0])
    named = [("1 server, 2 tools, empty history", few), ("1,000 tools", tools), ("21 servers", servers), (f"{kept:,} calls in the history before", rows)]
    figures = bench("drive", [system(name, *one) for name, one in named])
    floor = figures[0]["cpu_us"]["best"]
    table([[one["name"], number(one["p50_us"]["best"]), number(one["cpu_us"]["best"]), number(one["cpu_us"]["best"] / floor, 2), number(one["rss_mb"], 1)]
           for one in figures], ["Steadyhand, HTTP → HTTP", "p50 µs", "CPU µs/call @64", "÷ the first", "RSS MB"])


def calls_kept(address):
    metrics = json.load(urllib.request.urlopen(f"http://{address}/v1/metrics", timeout=10))
    return sum(tool["totalExecutions"] for tool in metrics["tools"])


def main():
    what = sys.argv[1]
    upstream = f"127.0.0.1:{port()}"
    start([BENCH, "upstream", upstream, "2"], upstream)
    bare = f"127.0.0.1:{port()}"
    bare_process = start([BENCH, "bare", bare, upstream], bare)
    over_http, http_process = steadyhand("http", [f'url = "http://{upstream}/mcp"'])
    child = ", ".join(json.dumps(word) for word in ["stdio", "2"])
    over_stdio, stdio_process = steadyhand("stdio", [f"command = {json.dumps(BENCH)}", f"args = [{child}]"])
    modern, modern_process = steadyhand("modern", [f'url = "http://{upstream}/mcp"'], "modern")
    time.sleep(2)
    systems = [
        system("direct", upstream), system("bare proxy", bare, bare_process),
        system("Steadyhand, HTTP", over_http, http_process), system("Steadyhand, stdio", over_stdio, stdio_process),
        system("direct, 2026-07-28", upstream, modern=True), system("bare proxy, 2026-07-28", bare, bare_process, modern=True),
        system("Steadyhand, 2026-07-28", modern, modern_process, modern=True),
    ]
    if what == "peers":
        systems = [one for one in systems if not one["modern"]]
    if what != "ours":
        for name, address, path, process, echo, slower in peers(upstream) + stdio_peers():
            systems.append(system(name, address, process, path, echo, slower=slower))
    figures = bench("drive", systems)
    known = {figure["name"]: figure for figure in figures}
    floors = {False: known["bare proxy"], True: known.get("bare proxy, 2026-07-28")}
    direct = {False: known["direct"], True: known.get("direct, 2026-07-28")}
    rows = []
    for one, figure in zip(systems, figures):
        floor, straight = floors[one["modern"]], direct[one["modern"]]
        cpu, p50 = figure["cpu_us"]["best"], figure["p50_us"]["best"]
        added = p50 - straight["p50_us"]["best"]
        floor_added = floor["p50_us"]["best"] - straight["p50_us"]["best"]
        rows.append([figure["name"], number(p50), number(figure["p99_us"]["best"]), number(figure["calls_per_s"]["best"]),
                     number(figure["p99_together_ms"]["best"], 1), number(cpu), number(cpu and cpu / floor["cpu_us"]["best"], 2),
                     number(added / floor_added, 2), number(figure["calls_per_s"]["best"] / floor["calls_per_s"]["best"], 2),
                     number(figure["rss_mb"], 1), number(figure["errors"])])
    table(rows, ["system", "p50 µs", "p99 µs", "calls/s @64", "p99 @64 ms", "CPU µs/call @64", "CPU ÷ bare", "added p50 ÷ bare's",
                 "calls/s ÷ bare", "RSS MB", "errors"])
    if what == "peers":
        return
    print("Idle sessions (one call each)\n")
    held = bench("sessions", [one for one in systems if one["pid"] and not one["modern"] and one["slower"] < 20])
    table([[one["name"], number(one["held"]), number(one["kb_each"], 1), number(one["opened_per_s"])] for one in held],
          ["system", "sessions", "KB each", "opened/s"])
    print("tools/list of 1,000 tools\n")
    many = f"127.0.0.1:{port()}"
    start([BENCH, "upstream", many, "1000"], many)
    many_bare = f"127.0.0.1:{port()}"
    many_bare_process = start([BENCH, "bare", many_bare, many], many_bare)
    many_ours, many_process = steadyhand("many", [f'url = "http://{many}/mcp"'])
    time.sleep(2)
    listed = bench("list", [system("direct", many), system("bare proxy", many_bare, many_bare_process),
                            system("Steadyhand", many_ours, many_process)])
    table([[one["name"], number(one["tools"]), number(one["p50_ms"], 2), number(one["cpu_ms"], 2)] for one in listed],
          ["system", "tools", "p50 ms", "CPU ms"])
    print("The server behind is killed under 32 calls of 300 ms\n")
    for process in started:
        stop(process)
    killed = f"127.0.0.1:{port()}"
    command = [BENCH, "upstream", killed, "2"]
    bare = f"127.0.0.1:{port()}"
    bare_process = start([BENCH, "bare", bare, killed], bare)
    ours, ours_process = steadyhand("killed", [f'url = "http://{killed}/mcp"'])
    child, child_process = steadyhand("killed-stdio", [f"command = {json.dumps(BENCH)}", 'args = ["stdio", "2"]'])
    time.sleep(1)
    behind = {"address": killed, "command": command}
    plans = [{**system("bare proxy", bare, bare_process), "upstream": behind},
             {**system("Steadyhand, HTTP", ours, ours_process), "upstream": behind},
             {**system("Steadyhand, stdio", child, child_process), "upstream": None}]
    table([[one["name"], number(one["in_flight_lost"]), number(one["told_ms"]["p50"], 1), number(one["told_ms"]["max"], 1),
            number(one["outage_ms"]["p50"], 1), number(one["outage_ms"]["max"], 1), number(one["well_ms"]["first"]),
            number(one["well_ms"]["all"]), number(one["well_ms"]["callers"]), number(one["re_initialised"])]
           for one in bench("kill", plans)],
          ["system", "in flight, lost", "told p50 ms", "told max ms", "outage p50 ms", "outage max ms", "first well ms", "all well ms",
           "callers well", "re-initialised"])


growth() if sys.argv[1:] == ["growth"] else main()
