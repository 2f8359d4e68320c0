"""Install two versions in turn: neither may run compiled code of the other.

The other version lays out the communicator's record in another order, and compiled code of users
depends on that order. It also subtracts where this version adds. Its source files have the same
sizes and dates as the files of this version, so only their contents tell the versions apart.
"""

from __future__ import annotations

import os
from pathlib import Path

from release.commands import StepFailed, environment, fresh, run
from release.files import build_once, export

EDITS = {
    "pyproject.toml": ('\nversion = "', '\nversion = "1!'),
    "kernels/cobre_kernels/collective/reduction/fold.py": (
        '"""\n    return a + b\n',
        '"""\n    return a - b\n',
    ),
    "kernels/cobre_kernels/collective/comm.py": (
        '    rank=word("this rank"),\n    size=word("number of ranks"),\n',
        '    size=word("number of ranks"),\n    rank=word("this rank"),\n',
    ),
}
PROGRAM = """
import numpy
from cobre_comm import create_communicator
from numba import njit

@njit(cache=True)
def compiled(comm, send, recv):
    comm.allreduce(send, recv)
    return 100 * comm.size + 10 * comm.rank + recv[0]

with create_communicator() as comm:
    send, recv = numpy.full(1, comm.rank + 1.0), numpy.empty(1)
    comm.allreduce(send, recv)
    print(recv[0], compiled(comm, send, recv))
"""
# 1 + 2 and 1 - 2, from Python and from compiled code, on ranks 0 and 1 of 2.
SAID = {"this": "[0] 3.0 203.0\n[1] 3.0 213.0", "other": "[0] -1.0 199.0\n[1] -1.0 209.0"}


def wheel_of(name: str) -> Path:
    """Build the wheel of this version, or of the other version; return its path."""
    folder = export(fresh(f"version-{name}"))
    for path, (old, new) in EDITS.items() if name == "other" else ():
        text = (folder / path).read_text()
        if text.count(old) != 1:
            raise StepFailed(f"{path} has no longer one {old!r}: adapt release/upgrades.py")
        (folder / path).write_text(text.replace(old, new))
    return next(path for key, path in build_once(folder).items() if key.endswith(".whl"))


def check() -> None:
    """Install both versions in turn, twice, with one cache; check the results of each."""
    wheels = {name: wheel_of(name) for name in SAID}
    programs = environment("upgraded", wheels["this"])
    folder = fresh("user")
    (folder / "program.py").write_text(PROGRAM)
    for name in ("this", "other", "this", "other"):
        pip = (programs / "python", "-m", "pip", "install", "--quiet", "--no-deps")
        run(*pip, "--force-reinstall", wheels[name])
        for path in programs.parent.glob("lib/*/site-packages/cobre_*/**/*.py"):
            os.utime(path, (1e9, 1e9))
        for caches in ({"XDG_CACHE_HOME": "cache"}, {"NUMBA_CACHE_DIR": "numba-cache"}):
            variables = {key: str(folder / value) for key, value in caches.items()}
            said = run(
                programs / "cobre-comm", "run", "-n", 2, "program.py", cwd=folder, **variables
            )
            # Each wheel carries its own kernels, so no line says that kernels are compiled.
            if "\n".join(sorted(said.splitlines())) != SAID[name]:
                raise StepFailed(f"{name}, {caches}: expected {SAID[name]}, got {said}")
            print(f"   {name} version, {next(iter(caches))}: right", flush=True)
