"""The place: every supported Python, of this machine or of a newer Debian, with two numbas.

Every Python uses the machine code of the same wheel. All of them share one cache folder: so the
place shows that code that one Python has compiled never runs in another Python.
"""

import os
import pathlib
import shutil
import sys

from places.debian import Debian
from places.frame import (
    HELLO,
    ROOT,
    Failed,
    Missing,
    all_met,
    environment,
    expect,
    kill_one,
    run,
    trained,
)

# For each minor version of Python, the first numba that runs on it.
LOWEST = {11: "0.61.0", 12: "0.61.0", 13: "0.61.0", 14: "0.63.0"}
VERSIONS = """import numba, numpy, platform as p
print("Python", p.python_version(), "numba", numba.__version__, "NumPy", numpy.__version__)"""
SHM = "-m", "cobre_comm", "run", "-n", 2, "--backend", "shm"


def run_place(place, folder, stack):
    """Try each interpreter; return a line that says which interpreters were found."""
    wheels = folder / "wheels"
    done = run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", wheels, ROOT,
               within_s=200)  # fmt: skip
    expect(done.code == 0, done)
    found = _interpreters(folder)
    for minor, python in found.items():
        for numba in ("", f"=={LOWEST[minor]}"):
            _try(place, folder, minor, python, numba)
    absent = [f"3.{minor}" for minor in LOWEST if minor not in found]
    return f"Pythons found: {len(found)}; not here: {', '.join(absent) or 'none'}"


def _interpreters(folder):
    """Return the command that starts each Python: that of pyenv, on PATH, or of Debian's sid."""
    found = {minor: [path] for minor in LOWEST if (path := _interpreter(minor))}
    if missing := [minor for minor in LOWEST if minor not in found]:
        packages = [f"python3.{minor}-venv" for minor in missing]
        try:
            debian = Debian(folder / "debian", "sid", packages, [ROOT, folder])
        except Missing as reason:
            print(f"left out: {', '.join(packages)}: {reason}")
            return found
        found |= {minor: debian.command(f"/usr/bin/python3.{minor}") for minor in missing}
    return found


def _interpreter(minor):
    """Return the path of a Python 3.minor that runs on this machine, or None."""
    root = pathlib.Path(os.environ.get("PYENV_ROOT", pathlib.Path.home() / ".pyenv"))
    candidates = sorted(root.glob(f"versions/3.{minor}.*/bin/python"), reverse=True)
    on_path = shutil.which(f"python3.{minor}")
    for path in [*candidates, *([on_path] if on_path else [])]:
        if run(path, "-c", "import venv").code == 0:
            return path
    return None


def _try(place, folder, minor, python, numba):
    """Add the row of a Python and a numba; with the newest numba, train, and lose a rank."""
    home = folder / f"3.{minor}.{numba.removeprefix('==') or 'newest'}"
    command = f"python3.{minor}, numba{numba}: cobre-comm run -n 2 ..."
    with place.row(f"Python 3.{minor}, {'lowest' if numba else 'newest'} numba", command) as seen:
        done = run(*python, "-m", "venv", "--clear", home)
        expect(done.code == 0, done)
        inside = *python[:-1], home / "bin" / "python"
        wheel = next((folder / "wheels").glob("*.whl"))
        install = "-m", "pip", "install", "-q", "--no-compile", wheel, f"numba{numba}"
        done = run(*inside, *install, within_s=400)
        expect(done.code == 0, done)
        extra = {"XDG_CACHE_HOME": str(folder / f"cache.{os.getpid()}"), "PATH": _path(home)}
        seen.append(run(*inside, "-c", VERSIONS).output.strip())
        for _ in range(2):
            done = run(*inside, *SHM, HELLO, within_s=400, **extra)
            all_met(done, 2, "shm")
            if "compiling kernels" in done.output:
                raise Failed("kernels were compiled, although the wheel carries them")
        seen.append("hello on shm good, with the wheel's kernels")
        if numba:
            done = run(*inside, "-m", "cobre_kernels.machine.build", folder / "code", within_s=400)
            expect(done.code == 0, done)
            seen.append("it compiles the kernels too")
        if not numba:
            start = *inside, *SHM
            job = folder / "result.json"
            hashed = trained(lambda *words: run(*start, *words, within_s=600, **extra), job)
            seen.append(f"SDDP {hashed}")
            seen.append(f"a rank is killed: {kill_one(start, 2, **extra)}")


def _path(home):
    return f"{home / 'bin'}{os.pathsep}{environment()['PATH']}"
