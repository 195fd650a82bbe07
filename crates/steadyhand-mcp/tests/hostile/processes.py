"""Faults of the process: it ends, stops, goes silent, or leaves something behind."""

import os
import signal
import threading
import time

from table import mode
from well_behaved import LIFETIME_SECONDS, add_line, die, stay


def ends(server, code, words):
    if server.fault_is_due():
        die(code, words)


def ends_in_initialize(server, code, words):
    well_behaved = server.on_initialize
    server.on_initialize = lambda id, params: (ends(server, code, words), well_behaved(id, params))


@mode("exits with 0 before it reads anything")
def exit0_before_init(server):
    ends(server, 0, "nothing to do, bye")


@mode("exits with 1 before it reads anything")
def exit1_before_init(server):
    ends(server, 1, "cannot open /etc/hostile.conf")


@mode("reads initialize, then exits with 0")
def exit0_during_init(server):
    ends_in_initialize(server, 0, "no client, no service")


@mode("reads initialize, then exits with 1")
def exit1_during_init(server):
    ends_in_initialize(server, 1, "the handshake frightened me")


@mode("prints a Python traceback on stderr and exits with 1")
def traceback(server):
    ends(server, 1, """starting calendar server
Traceback (most recent call last):
  File "server.py", line 3, in <module>
    from mcp.server import Server
ModuleNotFoundError: No module named 'mcp'""")


@mode("fails its first NUMBER starts (1; counted in HOSTILE_STATE), then works")
def flaky_start(server):
    os.environ.setdefault("HOSTILE_TIMES", str(int(server.number or 1)))
    ends(server, 1, "the broker is not up yet")


@mode("exits with 3 while a call runs")
def exit_mid_call(server):
    server.on_trouble(server.if_due(lambda id, params: die(3, "fatal: out of cheese")))


@mode("kills itself while a call runs")
def sigkill(server):
    server.on_trouble(server.if_due(lambda id, params: os.kill(os.getpid(), signal.SIGKILL)))


@mode("stops itself (SIGSTOP) while a call runs")
def sigstop(server):
    server.on_trouble(server.if_due(lambda id, params: os.kill(os.getpid(), signal.SIGSTOP)))


@mode("closes stdout while a call runs, and lives on")
def stdout_closed(server):
    def trouble(id, params):
        os.close(1)
        stay()

    server.on_trouble(server.if_due(trouble))


@mode("reads the handshake and the request for tools, then never again")
def stdin_never_read(server):
    well_behaved = server.on_list

    def list_and_stop(id, params):
        well_behaved(id, params)
        if server.fault_is_due():
            stay()

    server.on_list = list_and_stop


@mode("stops to read during a call (says so in the ledger); asked to end, it first does all that was sent to it")
def reads_to_the_end(server):
    def trouble(id, params):
        asked = threading.Event()
        signal.signal(signal.SIGTERM, lambda *_: asked.set())
        add_line(os.environ["HOSTILE_LEDGER"], "asleep")
        while not asked.is_set():
            time.sleep(0.01)
        # Whatever still comes has one second.
        signal.alarm(1)

    server.on_trouble(server.if_due(trouble))


@mode("needs a moment to tidy up when its stdin ends; says in the ledger that it did")
def tidies_up(server):
    def run_and_tidy():
        run()
        time.sleep(0.2)
        add_line(os.environ["HOSTILE_LEDGER"], "tidied up")

    run, server.run = server.run, run_and_tidy


@mode("never answers initialize")
def silent_init(server):
    well_behaved = server.on_initialize
    server.on_initialize = lambda id, params: None if server.fault_is_due() else well_behaved(id, params)


@mode("talks on stdout and never answers initialize")
def stdout_talker(server):
    silent_init(server)
    server.write(b"Hello! I print to stdout\n")


@mode("begins to read after NUMBER seconds (3)")
def slow_start(server):
    if server.fault_is_due():
        time.sleep(server.number if server.number is not None else 3)


@mode("answers ping only after NUMBER seconds (1)")
def sign_of_life(server):
    answer = server.on_ping
    server.on_ping = lambda id: server.later(server.number or 1, lambda: answer(id))
    server.on_trouble(lambda id, params: None)


@mode("leaves a child behind that has its own session and ignores SIGTERM")
def grandchild(server):
    if os.fork():
        return
    # stdin and stdout stay open: the client must not wait for their end.
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.alarm(LIFETIME_SECONDS)
    if "HOSTILE_PIDS" in os.environ:
        add_line(os.environ["HOSTILE_PIDS"], str(os.getpid()))
    while True:
        time.sleep(1)
