"""The common part of the commands of ``cobre-comm``."""

from __future__ import annotations

import argparse
import textwrap
from typing import NoReturn

from cobre_comm.errors import did_you_mean

_WIDTH = 80
_UNKNOWN = "unrecognized arguments: "


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, and whose help ends with examples.

    ``command`` is the name after ``cobre-comm``. ``description`` is one paragraph. ``examples`` are
    lines for a shell. ``exit_codes`` gives each code with its meaning. Argparse makes the usage
    line, unless ``usage`` gives the arguments for that line.
    """

    def __init__(
        self, command: str, description: str, examples: str, exit_codes: str, usage: str = ""
    ) -> None:
        prog = f"cobre-comm {command}"
        examples = textwrap.indent(textwrap.dedent(examples).strip(), "  ")
        super().__init__(
            prog=prog,
            usage=f"{prog} {usage}" if usage else None,
            description=textwrap.fill(description, _WIDTH),
            epilog=f"examples:\n{examples}\n\n" + textwrap.fill(f"exit code: {exit_codes}", _WIDTH),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )

    def error(self, message: str) -> NoReturn:
        """Print the mistake in one line, and exit with status 2."""
        if message.startswith(_UNKNOWN):
            first = message.removeprefix(_UNKNOWN).split()[0].partition("=")[0]
            message += did_you_mean(first, self._option_string_actions)
        self.exit(2, f"{self.prog}: error: {message}\n")
