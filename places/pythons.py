"""The place: every Python that is supported and found here, with numba's lowest and newest.

All share one cache folder: compiled code of one must never run in another.
"""

import json
import os
import pathlib
import shutil

from places.frame import CASE, HELLO, ROOT, TRAIN, Failed, Missing, environment, expect, run

# The first numba that runs on each.
LOWEST = {11: "0.61.0", 12: "0.61.0", 13: "0.61.0", 14: "0.63.0"}
VERSIONS = """import numba, numpy, platform as p
print("Python", p.python_version(), "numba", numba.__version__, "NumPy", numpy.__version__)"""
COBRE = "cobre-comm", "run", "-n", 2


def run_place(place, folder, stack):
    """Try each interpreter; return what stands for versions."""
    found = {minor: path for minor in LOWEST if (path := _interpreter(minor))}
    if not found:
        raise Missing("no Python 3.11 or later on PATH or among pyenv's")
    hashes = set()
    for minor, path in found.items():
        for numba in ("", f"=={LOWEST[minor]}"):
            hashes.add(_try(place, folder, minor, path, numba))
    with place.row("SDDP: one hash", "each of these") as seen:
        if len(hashes) != 1:
            raise Failed(f"several: {hashes}")
        seen.append(hashes.pop()[:12])
    absent = [f"3.{minor}" for minor in LOWEST if minor not in found]
    return f"Pythons found: {len(found)}; not here: {', '.join(absent) or 'none'}"


def _interpreter(minor):
    """Return the path of a Python 3.minor that runs, or None."""
    root = pathlib.Path(os.environ.get("PYENV_ROOT", pathlib.Path.home() / ".pyenv"))
    candidates = sorted(root.glob(f"versions/3.{minor}.*/bin/python"), reverse=True)
    on_path = shutil.which(f"python3.{minor}")
    for path in [*candidates, *([on_path] if on_path else [])]:
        if run(path, "-c", "import venv").code == 0:
            return path
    return None


def _try(place, folder, minor, path, numba):
    """Add the row of one Python and one numba; return the hash of the example."""
    name = f"3.{minor}.{numba.removeprefix('==') or 'newest'}"
    home = folder / name
    python = home / "bin" / "python"
    command = f"python3.{minor}, numba{numba}: cobre-comm run -n 2 ..."
    with place.row(f"Python 3.{minor}, {'lowest' if numba else 'newest'} numba", command) as seen:
        run(path, "-m", "venv", home)
        install = python, "-m", "pip", "install", "-q", "-e", f"{ROOT}[check]", f"numba{numba}"
        done = run(*install, within_s=400)
        expect(done.code == 0, done)
        extra = {"XDG_CACHE_HOME": str(folder / "cache"), "PATH": _path(home)}
        seen.append(run(python, "-c", VERSIONS).output.strip())
        for first in (True, False):
            done = run(*COBRE, "--backend", "shm", HELLO, within_s=400, **extra)
            expect(done.code == 0 and "2 ranks, whose numbers add up to 1" in done.output, done)
            if ("kernels compiled" in done.output) != first:
                raise Failed("kernels of another version were taken, or its own were not")
        out = folder / "result.json"
        words = TRAIN, CASE, "--quiet", "--iterations", 20, "--out", out
        done = run(*COBRE, *words, within_s=600, **extra)
        expect(done.code == 0, done)
        seen.append("its own kernels; hello and SDDP on shm good")
        return json.loads(out.read_text())["cuts_sha256"]
    return ""


def _path(home):
    return f"{home / 'bin'}{os.pathsep}{environment()['PATH']}"
