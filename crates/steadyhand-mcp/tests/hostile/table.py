"""The table of modes; the files that hold them put them in."""

MODES = {}


def mode(line):
    """Puts a function into the table under its own name; `line` is what --list says of it."""

    def add(function):
        MODES[function.__name__] = (function, line)
        return function

    return add
