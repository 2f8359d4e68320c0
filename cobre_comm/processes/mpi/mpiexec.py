"""Finds the ``mpiexec`` that belongs to the MPI library that mpi4py loads.

A machine may have several MPIs, and the name ``mpiexec`` may belong to any of them. The starter of
a wrong MPI starts N processes, each of which believes that it is rank 0 of 1. So this module asks
the library for its name, and each starter for the name of its MPI.
"""

from __future__ import annotations

import os
import pwd
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cobre_comm.errors import InitializationFailed
from cobre_comm.processes.mpi.probe import Library, find_library
from cobre_comm.processes.mpi.variables import without_outer_job
from cobre_comm.system.cores import usable_cores

OVERRIDE = "COBRE_MPI_MPIEXEC"
ANSWER_S = 20.0  # the time for a starter on a slow network file system

# A word in a starter's --version, in lower case, and the starter's MPI. Intel's comes before MPICH,
# because it says Hydra too.
_SIGNS = (
    ("intel(r) mpi", "impi"),
    ("open mpi", "openmpi"),
    ("openrte", "openmpi"),
    ("prrte", "openmpi"),
    ("hydra", "mpich"),
)
# MPICH's Hydra starts the ranks of MVAPICH.
_STARTERS = {"mvapich": "mpich"}
# For each MPI, names of its starter. Names that no other MPI uses come first, so that few starters
# have to be asked.
_NAMES = {
    "openmpi": ("mpiexec.openmpi", "mpiexec", "mpirun", "prterun", "orterun"),
    "mpich": ("mpiexec.mpich", "mpiexec.hydra", "mpiexec", "mpirun"),
    "impi": ("mpiexec.hydra", "mpiexec", "mpirun"),
}
_SHELLS = ("ssh", "rsh")  # programs by which Open MPI reaches other machines
# Variables that tell parts of Open MPI where their files are, if they were moved after the build.
_PREFIXES = ("OPAL_PREFIX", "PRTE_PREFIX", "PMIX_PREFIX")
_AS_ROOT = tuple(
    f"{part}_ALLOW_RUN_AS_ROOT{tail}" for part in ("OMPI", "PRTE") for tail in ("", "_CONFIRM")
)


@dataclass(frozen=True)
class Mpiexec:
    """The starter of one MPI library."""

    library: str  # openmpi, mpich, impi, or another vendor's name in lower case
    command: tuple[str, ...]  # the absolute path, and options that are always given
    # The environment for the command: the given one, with variables that this MPI needs, and
    # without those of an outer job.
    environment: Mapping[str, str]
    starter: str  # the MPI that defines the options of the executable; "" if that is not known

    def start_command(self, size: int, program: Sequence[str]) -> list[str]:
        """Return the command that starts ``program`` on ``size`` ranks of this machine.

        Ranks are not bound to cores. There may be more ranks than cores.
        """
        options: list[str] = []
        if self.starter == "openmpi":
            options = ["--bind-to", "none"]
            # Open MPI counts a core with two hardware threads once; usable_cores counts it twice.
            if size > max(1, usable_cores() // 2):
                options += ["--map-by", ":OVERSUBSCRIBE"]
        return [*self.command, "-n", str(size), *options, *program]


def find_mpiexec(environ: Mapping[str, str]) -> Mpiexec:
    """Find the starter of the MPI that mpi4py loads in the environment that the job will have.

    ``COBRE_MPI_MPIEXEC`` may name the starter. Otherwise it is looked for beside the library,
    beside the interpreter, and on ``PATH``. If there is none, ``InitializationFailed`` says what to
    install or set.
    """
    library = find_library(environ)
    environment = without_outer_job(library.environment)
    if library.vendor == "openmpi" and os.geteuid() == 0:
        # Without this, Open MPI refuses to run as root; in a container there may be no other user.
        environment |= dict.fromkeys(_AS_ROOT, "1")
    if library.vendor == "openmpi":
        environment.setdefault("HOME", _home())  # without HOME, Open MPI starts nothing
        if not any(shutil.which(name, path=environment.get("PATH")) for name in _SHELLS):
            # Without such a program or a stand-in, Open MPI 4 starts nothing, even on this machine.
            environment.setdefault("OMPI_MCA_plm_rsh_agent", "false")
    if library.vendor == "impi":
        environment.setdefault("I_MPI_PIN", "off")
    if environ.get(OVERRIDE):
        return _chosen_by_user(library, environment)
    others: dict[str, str] = {}
    for path in _candidates(library, environment):
        owner, needed = _owner(path, environment)
        if owner == _wanted(library):
            return Mpiexec(library.vendor, _command(path), environment | needed, owner)
        others[path] = owner
    raise InitializationFailed("mpi", _none_found(library, others))


def _home() -> str:
    """Return this user's home; in a container a user may be a mere number without a home."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_dir
    except KeyError:
        return "/"


def _wanted(library: Library) -> str:
    return _STARTERS.get(library.vendor, library.vendor)


def _command(path: str) -> tuple[str, ...]:
    """Return the executable; PRRTE's ``prterun`` gets options to act as Open MPI's starter."""
    return (path, "--personality", "ompi") if Path(path).name == "prterun" else (path,)


def _chosen_by_user(library: Library, environment: dict[str, str]) -> Mpiexec:
    """Use the command of ``COBRE_MPI_MPIEXEC``; raise if it is missing or of another MPI."""
    name, *options = shlex.split(environment[OVERRIDE])
    found = shutil.which(name, path=environment.get("PATH"))
    if found is None:
        raise InitializationFailed("mpi", f"{OVERRIDE}={name}: there is no such program")
    path = str(Path(found).absolute())
    owner, needed = _owner(path, environment)
    if owner not in ("", _wanted(library)):
        raise InitializationFailed(
            "mpi",
            f"{OVERRIDE}={name} belongs to {owner}, but mpi4py loads {library}; set it to the "
            "mpiexec of that library, or choose another library by MPI4PY_MPIABI",
        )
    return Mpiexec(library.vendor, (*_command(path), *options), environment | needed, owner)


def _candidates(library: Library, environment: Mapping[str, str]) -> Iterator[str]:
    """Yield the paths of starters that may belong to the library, the most likely ones first."""
    folders: list[Path] = []
    for file in (Path(library.path), Path(library.path).resolve()):
        # PREFIX/lib/libmpi.so, or PREFIX/lib/release/libmpi.so for Intel's
        folders += [parent.parent / "bin" for parent in file.parents[:2]]
    folders += [Path(sys.executable).parent, Path(sys.prefix) / "bin"]
    search = os.pathsep.join([*map(str, folders), environment.get("PATH", os.defpath)])
    seen = set()
    for folder in search.split(os.pathsep):
        for name in _NAMES.get(library.vendor, ()):
            path = shutil.which(name, path=folder) if folder else None
            if path is not None and path not in seen:
                seen.add(path)
                yield str(Path(path).absolute())


def _owner(path: str, environment: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """Return the MPI of a starter ("" if the starter does not say), and the variables it needs.

    Open MPI may have been moved after it was built, as in a wheel. Then it does not even print its
    version, unless variables tell it where it is.
    """
    owner = _signed(path, environment)
    if owner:
        return owner, {}
    prefix = str(Path(path).parents[1])
    moved = dict.fromkeys(_PREFIXES, prefix)
    owner = _signed(path, {**environment, **moved})
    return owner, moved if owner else {}


def _signed(path: str, environment: Mapping[str, str]) -> str:
    try:
        answer = subprocess.run(
            [path, "--version"],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=ANSWER_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    text = answer.stdout.decode(errors="replace").lower()
    if answer.returncode != 0 or "couldn't open the help file" in text:
        return ""
    return next((owner for sign, owner in _SIGNS if sign in text), "")


def _none_found(library: Library, others: Mapping[str, str]) -> str:
    found = ", ".join(f"{path} ({owner or 'unknown'})" for path, owner in others.items())
    return (
        f"mpi4py loads {library}, and the mpiexec of that library was not found beside it, beside "
        f"{sys.executable} or on PATH (found: {found or 'none'}); install it, set {OVERRIDE} to "
        "its path, or choose another library by MPI4PY_MPIABI (openmpi, mpich, impi)"
    )
