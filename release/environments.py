"""Empty environments in which the files of a release are installed, and run."""

from __future__ import annotations

import re
import shutil
import tarfile
from pathlib import Path

from release.commands import StepFailed, artefacts, environment, fresh, project, run

PROGRAM = """
import numba, numpy, llvmlite, cobre_comm
from numba import njit

@njit(cache=True)
def total(comm, send, recv):
    comm.allreduce(send, recv)
    return recv[0]

with cobre_comm.create_communicator() as comm:
    found = total(comm, numpy.full(1, comm.rank + 1.0), numpy.empty(1))
    if comm.rank == 0:
        print(cobre_comm.__file__)
        print(found, f"numba {numba.__version__}, numpy {numpy.__version__}, llvmlite "
              f"{llvmlite.__version__}")
"""


def lowest() -> list[str]:
    """Return the lower bounds of the dependencies as requirements."""
    asked = [str(each) for each in project()["dependencies"]]  # type: ignore[attr-defined]
    return [re.sub(r">=([\d.]+).*", r"==\1", each) for each in asked]


def run_two_ranks(programs: Path, cache: Path) -> str:
    """Run a small program on two ranks in an environment; return the versions that it prints."""
    folder = fresh("program")
    (folder / "program.py").write_text(PROGRAM)
    said = run(
        programs / "cobre-comm", "run", "--no-prefix", "-n", 2, "program.py",
        cwd=folder, XDG_CACHE_HOME=str(cache),
    )  # fmt: skip
    lines = said.splitlines()  # no line says that kernels are compiled: wheels carry machine code
    if (
        len(lines) != 2
        or not lines[0].startswith(str(programs.parent))
        or not lines[1].startswith("3.0 ")
    ):
        raise StepFailed(f"two ranks said: {said}")
    return lines[1].removeprefix("3.0 ")


def check_installs() -> None:
    """Install sdist and wheel, with the lowest and with the newest dependencies; run two ranks."""
    cache = fresh("cache")
    for path in artefacts():
        for bounds, more in (("lowest", lowest()), ("newest", [])):
            programs = environment("installed", path, *more)
            print(f"   {path.name}, {bounds}: {run_two_ranks(programs, cache)}", flush=True)
            run(programs / "cobre-comm", "explain", "CollectiveFailed")
            run(programs / "python", "-m", "cobre_kernels.machine.build", fresh("kernels"))


def run_quick() -> None:
    """Run the sdist's quick loop against the package that was installed from the sdist."""
    sdist, _ = artefacts()
    folder = fresh("sources")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    [source] = folder.iterdir()
    for name in ("cobre_comm", "kernels"):  # so that Python imports the installed packages
        shutil.rmtree(source / name)
    for bounds, more in (("lowest", lowest()), ("newest", [])):
        programs = environment("quick", f"{sdist}[test]", *more)
        said = run(
            programs / "python", "-m", "pytest", "-q", "-m", "quick",
            cwd=source, XDG_CACHE_HOME=str(fresh("cache-quick")),
        )  # fmt: skip
        print(f"   {bounds}: {said.strip().splitlines()[-1]}", flush=True)
