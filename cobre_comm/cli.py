"""The command ``cobre-comm``."""

from __future__ import annotations

import argparse
import importlib.machinery
import os
import pathlib
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import cobre_comm
from cobre_comm.common.command_line import Parser
from cobre_comm.errors import BackendError, InitializationFailed

if TYPE_CHECKING:
    from cobre_comm.processes.job import Job
    from cobre_comm.processes.mpi.mpiexec import Mpiexec

USAGE = """\
usage: cobre-comm run -n N [options] [--] script.py [arguments]
       cobre-comm run -n N [options] -m module [arguments]
       cobre-comm check [options]
       cobre-comm compile [options]
       cobre-comm --version
"""


def _run_parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="cobre-comm run",
        usage=USAGE.splitlines()[0].removeprefix("usage: ") + " | -m module [arguments]",
        description="Run a script or a module on N ranks of this machine, or of each of several.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("-n", dest="size", type=int, required=True, metavar="N", help="ranks on this machine")
    add(
        "--backend",
        default="auto",
        metavar="NAME",
        help="auto (shm, or local for one rank; tcp with --nnodes), shm, tcp, mpi or local",
    )
    add(
        "--timeout",
        type=float,
        metavar="S",
        help="longest wait for a live rank in a collective; 0: no limit",
    )
    add(
        "--bind",
        choices=("none", "core"),
        default="none",
        help="core: each rank on one core, in their order (default: none)",
    )
    add(
        "--grace",
        type=float,
        default=5.0,
        metavar="S",
        help="how long ranks may take to end after Ctrl-C (default: 5)",
    )
    add(
        "--no-prefix",
        dest="prefix",
        action="store_false",
        help="do not put [rank] before each line of output",
    )
    _add_nodes(parser)
    add(
        "-m",
        dest="module",
        nargs=argparse.REMAINDER,
        metavar="module",
        help="run a module, with the arguments that follow",
    )
    add("script", nargs=argparse.REMAINDER, help="the script and its arguments")
    return parser


def _add_nodes(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "several machines", "one launcher on each, all with the same options but --node-rank"
    )
    add = group.add_argument
    add("--nnodes", type=int, metavar="N", help="number of machines")
    add("--node-rank", type=int, metavar="K", help="which this is, from 0 on")
    add(
        "--coordinator",
        metavar="HOST[:PORT]",
        help="the machine of --node-rank 0, and a port free there (default: 29500)",
    )
    add(
        "--token-file",
        metavar="FILE",
        help="the secret of the job, in a file that others cannot read (or set COBRE_TCP_TOKEN)",
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == ["run"]:
        return _run(words[1:])
    if words[:1] == ["check"]:
        from cobre_comm.check.command import main as check

        return check(words[1:])
    if words[:1] == ["compile"]:
        from cobre_comm.compile.command import main as compile_

        return compile_(words[1:])
    if words in (["--version"], ["-V"]):
        print(f"cobre-comm {cobre_comm.__version__}")
        return 0
    if words in (["--help"], ["-h"]):
        print(USAGE, end="")
        return 0
    what = f"unknown command {words[0]!r}" if words else "a command is missing"
    print(f"cobre-comm: error: {what}; try `cobre-comm run -n 4 script.py`", file=sys.stderr)
    return 2


def _run(words: Sequence[str]) -> int:
    """Check everything that can be checked, then start."""
    from cobre_comm.compile.warm import warm_up
    from cobre_comm.processes.interpreter import interpreter_command
    from cobre_comm.processes.port import with_rendezvous
    from cobre_comm.run.run import Options, run

    parser = _run_parser()
    chosen = parser.parse_args(words)
    try:
        program = _program(chosen.module, chosen.script)
        job = _job(chosen)
        if chosen.bind == "core" and not hasattr(os, "sched_setaffinity"):
            raise ValueError("--bind core: this system cannot bind a process to a core")
        mpiexec = _mpiexec(job, bound=chosen.bind == "core") if job.backend == "mpi" else None
    except (ValueError, InitializationFailed) as error:
        parser.error(str(error))
    except BackendError as error:
        parser.error(f"{error}; {error.suggestion}")
    except KeyboardInterrupt:
        return 130
    options = Options(bind=chosen.bind == "core", prefix=chosen.prefix, grace_s=chosen.grace)
    try:
        if job.size > 1:
            warm_up([job.backend], os.environ if mpiexec is None else mpiexec.environment)
        with with_rendezvous(job) as job:
            return run(job, [*interpreter_command(), *program], options, mpiexec)
    except KeyboardInterrupt:  # before or after the ranks; while they run, it is theirs
        return 130
    except OSError as error:  # no processes, descriptors or ports left
        print(f"cobre-comm run: error: cannot start the ranks: {error}", file=sys.stderr)
        return 1


def _mpiexec(job: Job, *, bound: bool) -> Mpiexec:
    """Return what starts the ranks; ``ValueError`` or ``InitializationFailed`` if nothing can."""
    from cobre_comm.processes.environment import rank_environment
    from cobre_comm.processes.mpi.mpiexec import find_mpiexec
    from cobre_comm.processes.mpi.start import check_system

    check_system()
    return find_mpiexec(rank_environment(job, 0, os.environ, bound=bound))


def _job(chosen: argparse.Namespace) -> Job:
    """Return the job that the options describe; ``ValueError`` or ``BackendError`` if none."""
    from cobre_comm.processes.job import Job, check_size, check_timeout, choose_backend
    from cobre_comm.run.nodes import NodeOptions, job_on_nodes

    check_size(chosen.size)
    check_timeout(chosen.timeout)
    check_timeout(chosen.grace)
    if chosen.nnodes is not None:
        nodes = NodeOptions(chosen.nnodes, chosen.node_rank, chosen.coordinator, chosen.token_file)
        return job_on_nodes(nodes, chosen.size, chosen.backend, chosen.timeout, os.environ)
    for name in ("node_rank", "coordinator", "token_file"):
        if getattr(chosen, name) is not None:
            option = "--" + name.replace("_", "-")
            raise ValueError(
                f"{option} is for a job on several machines: say how many, by --nnodes"
            )
    return Job(chosen.size, choose_backend(chosen.backend, chosen.size), chosen.timeout)


def _program(module: Sequence[str] | None, script: Sequence[str]) -> list[str]:
    """Return what the interpreter gets; ``ValueError`` if it cannot run that."""
    if module is not None:
        if not module:
            raise ValueError("-m needs the name of a module")
        _check_module(module[0])
        return ["-m", *module]
    words = list(script[1:] if script[:1] == ["--"] else script)
    if not words:
        raise ValueError("a script is missing: give a file, or -m and a module")
    _check_script(words[0])
    return words


def _check_script(name: str) -> None:
    path = pathlib.Path(name)
    if path.is_dir():
        raise ValueError(f"{name!r} is a directory, not a script")
    try:
        path.open("rb").close()
    except OSError as error:
        raise ValueError(f"cannot open script {name!r}: {error.strerror}") from None


def _check_module(name: str) -> None:
    """Look for the top package only: a deeper look would run its code."""
    top = name.partition(".")[0]
    folders = sys.path if sys.flags.safe_path else [str(pathlib.Path.cwd()), *sys.path]
    known = top in sys.builtin_module_names or importlib.machinery.FrozenImporter.find_spec(top)
    if not known and importlib.machinery.PathFinder.find_spec(top, folders) is None:
        raise ValueError(f"there is no module {name!r}")


if __name__ == "__main__":
    raise SystemExit(main())
