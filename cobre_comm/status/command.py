"""``cobre-comm status``: its arguments, and its loop."""

from __future__ import annotations

import os
import sys
import time
from argparse import Namespace
from collections.abc import Sequence

from cobre_comm.command_line import Parser

_PERIOD_S = 1.0
_CLEAR = "\x1b[H\x1b[2J"


def _parser() -> Parser:
    parser = Parser(
        "status",
        "Show the running jobs of this user on this machine: the last call of each rank, whom it "
        "waits for, and since when. Ranks are not asked, so one that hangs is shown like any "
        "other; the job's own user may look, without further rights.",
        """
        cobre-comm status                      # all jobs
        cobre-comm status cobre-1000-5f0c      # the job whose name begins like that
        cobre-comm status --watch              # again every second, until Ctrl-C
        cobre-comm status --serve              # the same in a browser of this machine, drawn
        """,
        "0 a job was found, 1 none was, 2 wrong arguments, 130 after Ctrl-C",
    )
    parser.add_argument("job", nargs="?", metavar="JOB", help="name of a job, or how it begins")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--watch", action="store_true", help="look again every second")
    how.add_argument(
        "--serve", action="store_true",
        help="print the address of a live page for a browser of this machine, until Ctrl-C",
    )  # fmt: skip
    parser.add_argument(
        "--port", type=int, metavar="P", help="port of the live page (default: a free one)"
    )
    return parser


def main(words: Sequence[str]) -> int:
    """Run the command; return the exit status."""
    parser = _parser()
    chosen = parser.parse_args(words)
    if sys.platform != "linux":
        parser.error("this needs Linux, where /proc shows the files of processes")
    if chosen.port is not None and not chosen.serve:
        parser.error("--port is the port of the live page; it needs --serve")
    if chosen.port is not None and not 0 <= chosen.port < 2**16:
        parser.error(f"--port must be between 0 and 65535, is {chosen.port}")
    try:
        return _serve(parser, chosen) if chosen.serve else _print(chosen)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # as with | head
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _print(chosen: Namespace) -> int:
    """Print what jobs do, once or again and again."""
    from cobre_comm.status.find import find_ranks
    from cobre_comm.status.jobs import jobs_of
    from cobre_comm.status.report import report

    none = f"no job of yours {f'begins with {chosen.job!r}' if chosen.job else 'runs'} here"
    while True:
        said = report(jobs_of(find_ranks(), chosen.job))
        clear = _CLEAR if chosen.watch and sys.stdout.isatty() else ""
        print(f"{clear}{said or none}", flush=True)
        if not chosen.watch:
            return 0 if said else 1
        time.sleep(_PERIOD_S)


def _serve(parser: Parser, chosen: Namespace) -> int:
    """Serve the live page until Ctrl-C."""
    from cobre_comm.status.data import as_data
    from cobre_comm.status.find import find_ranks
    from cobre_comm.status.jobs import jobs_of
    from cobre_comm.status.serve import Server

    try:
        server = Server(chosen.port or 0, lambda: as_data(jobs_of(find_ranks(), chosen.job)))
    except OSError as error:
        parser.error(f"port {chosen.port} cannot be used: {error.strerror}")
    with server:
        print(f"{server.url}\nThis page shows the jobs until Ctrl-C.", flush=True)
        server.serve_forever()
    return 0
