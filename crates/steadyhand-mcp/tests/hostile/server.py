"""An MCP server on stdio, well-behaved except for one fault, which the first argument names.

    python3 -S -E server.py MODE [NUMBER]
    python3 -S -E server.py --list          the modes, one line each

`well_behaved.py` has the server without faults. A mode is a small function in `messages.py`, `processes.py`, `beside.py` or `relaying.py`,
found in `MODES` by its name, that is called once at the start, before anything is read, and puts its fault where it
belongs: it replaces a method, adds a tool, or acts at once. NUMBER is what the mode's line says it is.

Every mode offers
    echo {message, delay_ms?}       gives `message` back; never at fault, so that "the next call works" can be seen
    note {message, delay_ms?}       not safe to repeat: adds a line to the file HOSTILE_LEDGER, then answers
    heard {}                        what the client has sent so far: method, "response" or the raw line that is no JSON-RPC
    trouble {…}                     where a fault of a running call happens

Variables, all optional
    HOSTILE_STATE    a file that remembers across restarts how often the fault was shown. With it a fault is shown once (or
                     HOSTILE_TIMES times) and the server is well-behaved from then on; without it always.
    HOSTILE_LEDGER   see `note`
    HOSTILE_PIDS     a file to which the mode `grandchild` adds the pid of each child it leaves behind
"""

import signal
import sys

# Before the imports of our own: the source tree stays clean.
sys.dont_write_bytecode = True

import beside
import messages
import processes
import relaying
from table import MODES
from well_behaved import LIFETIME_SECONDS, Server


def main():
    if sys.argv[1:] == ["--list"]:
        for name, (_, line) in MODES.items():
            print(f"{name:20} {line}")
        return
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if name not in MODES:
        sys.exit(f"server.py: no mode {name!r}; python3 server.py --list names them")
    signal.alarm(LIFETIME_SECONDS)
    server = Server(float(sys.argv[2]) if len(sys.argv) > 2 else None)
    put_fault, _ = MODES[name]
    put_fault(server)
    server.run()


if __name__ == "__main__":
    main()
