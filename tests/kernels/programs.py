"""Start the programs of this folder that need a process of their own."""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[2]
LIMIT_S = 200


def start(name, *arguments, **environ):
    """Start ``python -m tests.kernels.<name>`` with more variables in its environment."""
    return subprocess.Popen(
        [sys.executable, "-m", f"tests.kernels.{name}", *map(str, arguments)],
        cwd=ROOT, env={**os.environ, **environ}, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


def output_of(process):
    """Wait for a program; return its output."""
    try:
        output, _ = process.communicate(timeout=LIMIT_S)
    finally:
        process.kill()
    assert process.returncode == 0, output
    return output
