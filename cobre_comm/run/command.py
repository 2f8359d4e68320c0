"""``cobre-comm run``: its arguments, and all checks before a rank is started."""

from __future__ import annotations

import argparse
import os
import pathlib
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from cobre_comm.command_line import Parser
from cobre_comm.config import BackendKind
from cobre_comm.errors import BackendError, InitializationFailed, InvalidBackend
from cobre_comm.system.streams import write_error

if TYPE_CHECKING:
    from cobre_comm.processes.binding import Binding
    from cobre_comm.processes.job import Job
    from cobre_comm.processes.mpi.mpiexec import Mpiexec
    from cobre_comm.run.terminal import Options

AUTO = "auto"


def _parser() -> Parser:
    parser = Parser(
        "run",
        "Run a script or a module on N ranks of this machine, or of each of several. Each line of "
        "output gets its rank in front. If a rank fails, the others are ended, and its error "
        "comes last. Ctrl-C and other signals reach every rank; nothing is left behind.",
        """
        cobre-comm run -n 4 train.py --iterations 100      # options after the script are its own
        cobre-comm run -n auto -m my_package               # as many ranks as cores
        cobre-comm run -n 4 --backend mpi train.py         # starts the MPI's own mpiexec
        cobre-comm run -n 4 --threads 12 --bind cores train.py   # 4 ranks of 12 threads on 48 cores
        cobre-comm run -n 4 --tty --quiet-ranks 1- train.py                # rank 0's progress bar
        cobre-comm run -n 64 --log-dir logs --quiet-ranks 1- train.py      # the others in files
        cobre-comm run -n 8 --survive train.py             # goes on after comm.shrink()
        cobre-comm run -n 8 --max-restarts 3 train.py      # goes on from its checkpoint
        cobre-comm run -n 8 --nnodes 2 --node-rank 0 --coordinator node-a train.py
        """,
        "0 if all ranks exited with 0 (with --survive, all that were not lost), else that of the "
        "first rank that failed (of the last attempt); 128 and the number of the signal that ended "
        "it, or the job; 1 if output could not be written, as on a full disk; 2 wrong arguments",
        "-n N [options] [--] script.py | -m module [arguments]",
    )
    add = parser.add_argument
    add(
        "-n",
        "-np",
        dest="size",
        type=_ranks,
        metavar="N",
        help="ranks on this machine; auto: as many as there are cores that this process may use, "
        "divided by the threads of each rank",
    )
    add(
        "--backend",
        metavar="NAME",
        help="auto (shm, or local for one rank; tcp with --nnodes), shm, tcp, mpi or local "
        "(default: COBRE_COMM_BACKEND, or auto)",
    )
    add(
        "--timeout",
        type=float,
        metavar="S",
        help="longest wait for a live rank in a collective; 0: no limit",
    )
    _add_binding(parser)
    add(
        "--grace",
        type=float,
        metavar="S",
        help="how long ranks may take to end after Ctrl-C (default: 5, and 0.25 more for each rank "
        "beyond the first on a core)",
    )
    _add_restarts(parser)
    _add_output(parser)
    _add_nodes(parser)
    add(
        "--as-mpi4py",
        action="store_true",
        help="let `import mpi4py` find cobre_comm.mpi4py, for a program that cannot be changed",
    )
    add(
        "-m",
        dest="module",
        nargs=argparse.REMAINDER,
        metavar="module",
        help="run a module, with the arguments that follow",
    )
    add("script", nargs=argparse.REMAINDER, help="the script and its arguments")
    return parser


def _ranks(text: str) -> int | str:
    if text == AUTO:
        return AUTO
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"takes a number or auto, got {text!r}") from None


def _add_restarts(parser: Parser) -> None:
    add = parser.add_argument_group(
        "after the loss of a rank",
        "which has ended by a signal, or with an exit code other than 0",
    ).add_argument
    add(
        "--survive",
        action="store_true",
        help="let the other ranks go on, which get CollectiveFailed and call comm.shrink(); "
        "backends shm and tcp",
    )
    add(
        "--max-restarts",
        type=int,
        default=0,
        metavar="N",
        help="start all ranks again, at most N times, to go on from a checkpoint; COBRE_RESTART is "
        "0, then 1, 2, ... (default: 0; with --survive, if no other rank is left or can go on); on "
        "one machine",
    )
    add(
        "--min-ranks",
        type=int,
        metavar="M",
        help="leave out ranks that were killed, as long as M ranks are left (default: all ranks)",
    )


def _add_binding(parser: Parser) -> None:
    from cobre_comm.processes.binding import BINDINGS, NONE

    add = parser.add_argument_group(
        "threads and binding", "ranks get whole cores, within a NUMA node or socket where they fit"
    ).add_argument
    add(
        "--threads",
        type=int,
        metavar="T",
        help="threads of each rank, for OpenMP, numba and BLAS, unless their variables are set "
        "(default: the cores, divided by the ranks; with --bind core 1)",
    )
    add(
        "--bind",
        choices=BINDINGS,
        default=NONE,
        help="what each rank is bound to: none; core, one core; cores, as many as it has threads; "
        "socket or numa, the whole socket or NUMA node of those cores (default: none)",
    )


def _add_output(parser: Parser) -> None:
    add = parser.add_argument_group("output").add_argument
    add(
        "--no-prefix",
        dest="prefix",
        action="store_false",
        help="do not put [rank] before each line of output",
    )
    add(
        "--quiet-ranks",
        metavar="LIST",
        help="ranks whose output is not shown, as in 1,3-5 or 1-; it still goes to --log-dir, and "
        "the error of a rank that fails is shown all the same",
    )
    add(
        "--log-dir",
        metavar="DIR",
        help="write what each rank writes to a file of its own, DIR/rank-0.log and so on; files of "
        "an earlier job there are replaced",
    )
    add(
        "--tty",
        action="store_true",
        help="let each rank write to a pseudo-terminal, so that colours and progress bars appear",
    )


def _add_nodes(parser: Parser) -> None:
    add = parser.add_argument_group(
        "several machines",
        "a launcher on each, with one COBRE_TCP_TOKEN, and the same options but --node-rank",
    ).add_argument
    add("--nnodes", type=int, metavar="N", help="number of machines")
    add("--node-rank", type=int, metavar="K", help="which this is, from 0 on")
    add(
        "--coordinator",
        metavar="HOST[:PORT]",
        help="the machine of --node-rank 0, and a port free there (default: 29500)",
    )


def main(words: Sequence[str]) -> int:
    """Check everything that can be checked, then run the job; return the exit status."""
    from cobre_comm.run.launcher_signals import usual_signals

    usual_signals()  # first, because the rest takes time
    from cobre_kernels.machine.made import prepare

    from cobre_comm.processes.binding import auto_ranks
    from cobre_comm.processes.interpreter import interpreter_command
    from cobre_comm.processes.restarts import check_restarts
    from cobre_comm.reports.trace_folder import trace_folder
    from cobre_comm.run.one_machine import run_job
    from cobre_comm.run.program import program_of
    from cobre_comm.system.streams import open_standard

    trace_folder()  # makes the path absolute, in mpiexec's environment too
    parser = _parser()
    chosen = parser.parse_args(words)
    open_standard()
    try:
        if chosen.size is None:
            raise ValueError(f"how many ranks? say it by -n: {_example(chosen)}")
        chosen.backend = chosen.backend or _told_backend(os.environ)
        if chosen.as_mpi4py:
            _stand_in(chosen.backend)
        everything = [*interpreter_command(), *program_of(chosen.module, chosen.script)]
        if chosen.size == AUTO:
            chosen.size = auto_ranks(chosen.threads)
        job = _job(chosen)
        binding = _binding(chosen, job)
        restarts = check_restarts(chosen.max_restarts, chosen.min_ranks, job.size)
        mpiexec = _mpiexec(job, binding) if job.backend == "mpi" else None
        options = _options(chosen, job, binding)
    except (ValueError, InitializationFailed, InvalidBackend) as error:
        parser.error(str(error))
    except BackendError as error:
        parser.error(f"{error}; {error.suggestion}")
    except KeyboardInterrupt:
        return 130
    try:
        if job.size > 1:
            prepare()
        return run_job(job, everything, options, restarts, mpiexec)
    except KeyboardInterrupt:  # before or after the ranks; while ranks run, Ctrl-C goes to them
        return 130
    except ImportError as error:  # there is no machine code, and it cannot be made
        write_error(f"cobre-comm run: error: {error}")
        return 1
    except OSError as error:  # no more processes, descriptors or ports
        write_error(f"cobre-comm run: error: cannot start the ranks: {error}")
        return 1


def _told_backend(environ: Mapping[str, str]) -> str:
    """Return the backend that the user has chosen by a variable.

    If this process is a rank, the variable does not count, because the rank's launcher has set it.
    """
    name = environ.get("COBRE_COMM_BACKEND") or AUTO
    if environ.get("COBRE_JOB_ID"):
        return AUTO
    try:
        return BackendKind.parse(name).value
    except InvalidBackend as error:
        raise ValueError(f"COBRE_COMM_BACKEND={name}: {error}, or unset it") from None


def _stand_in(backend: str) -> None:
    """Make ranks find cobre_comm.mpi4py as mpi4py, and this process too, when it checks ``-m``."""
    if backend == "mpi":
        raise ValueError("--as-mpi4py is for programs without an MPI: over mpi, leave it out")
    folder = str(pathlib.Path(__file__).parents[1] / "mpi4py" / "stand_in")
    known = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([folder, known] if known else [folder])
    sys.path.insert(0, folder)


def _example(chosen: argparse.Namespace) -> str:
    """Return the command line with a number of ranks, as an example in an error.

    If ``-n`` is behind the script, the number is taken from there.
    """
    named = ["-m", *chosen.module] if chosen.module else chosen.script or ["script.py"]
    size = "4"
    if "-n" in named[1:-1]:
        at = named.index("-n", 1)
        size, named = named[at + 1], [*named[:at], *named[at + 2 :]]
    return " ".join([f"cobre-comm run -n {size}", *named])


def _job(chosen: argparse.Namespace) -> Job:
    """Return the job for the options; ``ValueError`` or ``BackendError`` if they do not fit."""
    from dataclasses import replace

    from cobre_comm.processes.job import check_nodes

    job = _job_of_size(chosen)
    check_nodes(job, os.environ)
    if chosen.survive and job.backend == "mpi":
        raise ValueError("--survive is for shm and tcp: mpiexec ends all ranks once one is lost")
    return replace(job, survive=chosen.survive)


def _job_of_size(chosen: argparse.Namespace) -> Job:
    from cobre_comm.processes.job import Job, check_size, check_timeout, choose_backend
    from cobre_comm.run.nodes import job_on_nodes

    check_size(chosen.size)
    check_timeout(chosen.timeout)
    check_timeout(chosen.grace)
    if chosen.nnodes is not None:
        return job_on_nodes(chosen, os.environ)
    for name in ("node_rank", "coordinator"):
        if getattr(chosen, name) is not None:
            option = "--" + name.replace("_", "-")
            raise ValueError(
                f"{option} is for a job on several machines: say how many, by --nnodes"
            )
    return Job(chosen.size, choose_backend(chosen.backend, chosen.size), chosen.timeout)


def _binding(chosen: argparse.Namespace, job: Job) -> Binding:
    """Return where the ranks of this machine run; ``ValueError`` if they cannot be placed."""
    from cobre_comm.processes.binding import NONE, place

    if chosen.bind != NONE and not hasattr(os, "sched_setaffinity"):
        raise ValueError(f"--bind {chosen.bind}: this system cannot bind a process to cores")
    return place(len(job.ranks), chosen.bind, chosen.threads)


def _mpiexec(job: Job, binding: Binding) -> Mpiexec:
    """Find the ``mpiexec`` of the job; ``ValueError`` or ``InitializationFailed`` if none fits."""
    from cobre_comm.processes.environment import rank_environment
    from cobre_comm.processes.mpi.mpiexec import find_mpiexec
    from cobre_comm.processes.mpi.start import check_system

    check_system()
    return find_mpiexec(rank_environment(job, 0, os.environ, binding))


def _options(chosen: argparse.Namespace, job: Job, binding: Binding) -> Options:
    """Return the options of the ranks; as the last check, open the files in ``--log-dir``."""
    from cobre_comm.processes.escalation import GRACE_S, where_crowded
    from cobre_comm.reports.graceful import VARIABLE, graceful_signals
    from cobre_comm.run.output.destinations import Shown, parse_ranks
    from cobre_comm.run.output.log_file import open_logs
    from cobre_comm.run.terminal import Options

    asking = graceful_signals(os.environ.get(VARIABLE, ""))
    quiet = parse_ranks(chosen.quiet_ranks, job.size)
    logs = {} if chosen.log_dir is None else open_logs(chosen.log_dir, job)
    shown = Shown(chosen.prefix, quiet, chosen.tty, logs)
    grace_s = where_crowded(GRACE_S, len(job.ranks)) if chosen.grace is None else chosen.grace
    return Options(binding, grace_s, shown, asking)
