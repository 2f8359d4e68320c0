"""Runs a command to its end; if its exit status is wrong, shows its output."""

import subprocess
import sys


def run(*words, code=0, within_s=540, **rest):
    """Return the completed process; its status must be ``code``, unless ``code`` is None."""
    done = subprocess.run(words, capture_output=True, text=True, timeout=within_s, **rest)
    assert code in (None, done.returncode), f"{done.returncode}\n{done.stdout}{done.stderr}"
    return done


def python(*words, **rest):
    """Run Python to its end."""
    return run(sys.executable, *words, **rest)
