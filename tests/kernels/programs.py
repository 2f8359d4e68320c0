"""Runs those programs of this folder that need a process of their own."""

import os
import pathlib

from tests.command import python

ROOT = pathlib.Path(__file__).parents[2]
LIMIT_S = 200


def output_of(name, *arguments, **environ):
    """Return the output of ``python -m tests.kernels.<name>``, run with more variables."""
    words = "-m", f"tests.kernels.{name}", *map(str, arguments)
    return python(*words, within_s=LIMIT_S, cwd=ROOT, env={**os.environ, **environ}).stdout
