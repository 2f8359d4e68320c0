"""``cobre-comm compile``: makes the machine code now, so that the first job need not wait."""

from __future__ import annotations

from collections.abc import Sequence

from cobre_comm.command_line import Parser
from cobre_comm.system.streams import write_error

PROG = "cobre-comm compile"


def _parser() -> Parser:
    return Parser(
        "compile",
        "See that there is machine code of the kernels for this processor. A wheel has it. In a "
        "checkout, and where none fits, it is compiled into the user's cache: once for a machine, "
        "a user and a version, in some ten seconds on two cores. A job then compiles nothing of "
        "ours.",
        """
        cobre-comm compile                        # before a first job of a checkout
        RUN cobre-comm compile                    # in a Dockerfile: docs/howto/containers.md
        """,
        "0 there is machine code, 1 there is none, 2 wrong arguments, 130 interrupted",
    )


def main(words: Sequence[str]) -> int:
    """Run the command; return the exit status."""
    _parser().parse_args(words)
    from cobre_kernels.machine.made import file_of_this_machine

    try:
        print(f"machine code: {file_of_this_machine()}")
    except KeyboardInterrupt:
        write_error(f"{PROG}: interrupted")
        return 130
    except ImportError as error:
        write_error(f"{PROG}: error: {error}")
        return 1
    return 0
