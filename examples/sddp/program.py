"""The common part of the programs: arguments, one communicator, errors, an exit code."""

import argparse
import sys
from collections.abc import Callable
from typing import Any, NoReturn

from case.fields import CaseError
from training.run import StageInfeasible
from training.share import UnwrittenFile, UsageError

from cobre_comm import CollectiveFailed, CommError, create_communicator

EXIT_CODES = """\
Exit codes: 0 done, 1 the case cannot be solved, a file could not be written or ranks were lost,
2 wrong arguments or files, 130 interrupted."""


class Parser(argparse.ArgumentParser):
    """A parser that raises its errors, so that one rank alone can print an error."""

    def __init__(self, prog: str, description: str, examples: str) -> None:
        super().__init__(
            prog=prog,
            description=description,
            epilog=f"examples:\n{examples}\n\n{EXIT_CODES}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )

    def error(self, message: str) -> NoReturn:
        """Raise an error, instead of printing it and exiting."""
        raise UsageError(f"{self.format_usage()}{self.prog}: error: {message}")


def through_losses(comm: Any, work: Callable[[Any], None]) -> None:
    """Do ``work(comm)``; once a rank is lost, do it again on a communicator of the survivors.

    Raises
    ------
    CollectiveFailed
        If no rank is lost, because then the error has another cause, which would recur.
    """
    while True:
        try:
            work(comm)
            return
        except CollectiveFailed:
            survivors = comm.shrink()
            comm.close()
            if survivors.size == comm.size:
                raise
            comm = survivors


def run_program(
    argv: list[str],
    parse: Callable[[list[str]], argparse.Namespace],
    work: Callable[[Any, argparse.Namespace], None],
) -> int:
    """Run a program on every rank; return its exit code. Only rank 0 prints.

    Parameters
    ----------
    argv : list of str
        The command line.
    parse : callable
        Returns the arguments, or raises `UsageError`.
    work : callable
        Does the work of a rank, given its communicator and the arguments.
    """
    rank = 0
    wrong: UsageError | None = None
    arguments = argparse.Namespace()
    try:
        try:
            arguments = parse(argv)
        except UsageError as error:
            wrong = error
        with create_communicator() as comm:
            rank = comm.rank
            if wrong is not None:
                raise wrong
            work(comm, arguments)
        return 0
    except KeyboardInterrupt:
        code, text = 130, "interrupted"
    except (CaseError, UsageError) as error:
        code, text = 2, str(error)
    except StageInfeasible as error:
        code, text = 1, str(error)
    except UnwrittenFile as error:  # rank 0 has failed; the other ranks are not at fault
        code, text = int(rank == 0), str(error)
    except CommError as error:
        code, text = 1, f"rank {rank}: {error}"
        rank = 0
    if rank == 0:
        print(text, file=sys.stderr, flush=True)
    return code
