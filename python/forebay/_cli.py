"""The ``forebay`` command of the wheel: becomes the program that is packed beside this file."""

import os
import sys

from . import arrow


def main():
    _become("forebay")


def faults():
    _become("forebay-faults")


def _become(name):
    # `forebay demo` runs Python: this one, which has the package.
    os.environ.setdefault("FOREBAY_PYTHON", sys.executable)
    arrow.announce()
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), name)
    try:
        os.execv(program, [name, *sys.argv[1:]])
    except OSError as error:
        print(f"{name}: {program}: {error.strerror}", file=sys.stderr)
        sys.exit(253)
