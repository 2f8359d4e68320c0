"""``cobre-comm status``: its arguments, and its loop."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

from cobre_comm.common.command_line import Parser

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
        """,
        "0 a job was found, 1 none was, 2 wrong arguments",
    )
    parser.add_argument("job", nargs="?", metavar="JOB", help="name of a job, or how it begins")
    parser.add_argument("--watch", action="store_true", help="look again every second")
    return parser


def main(words: Sequence[str]) -> int:
    """Run the command; return the exit status."""
    parser = _parser()
    chosen = parser.parse_args(words)
    if sys.platform != "linux":
        parser.error("this needs Linux, where /proc shows the files of processes")
    from cobre_comm.status.find import find_ranks
    from cobre_comm.status.report import report

    none = f"no job of yours {f'begins with {chosen.job!r}' if chosen.job else 'runs'} here"
    try:
        while True:
            said = report(find_ranks(), chosen.job)
            clear = _CLEAR if chosen.watch and sys.stdout.isatty() else ""
            print(f"{clear}{said or none}", flush=True)
            if not chosen.watch:
                return 0 if said else 1
            time.sleep(_PERIOD_S)
    except KeyboardInterrupt:
        return 130
