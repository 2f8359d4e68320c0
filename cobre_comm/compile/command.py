"""``cobre-comm compile``: compile the kernels before a first job would wait for them."""

from __future__ import annotations

import os
from collections.abc import Sequence

from cobre_comm.backends import NAMES
from cobre_comm.common.command_line import Parser
from cobre_comm.common.streams import write_error

PROG = "cobre-comm compile"
BUILT_IN = NAMES
NO_PLACE = (
    "numba can write nowhere (set NUMBA_CACHE_DIR to a directory of yours), or is off "
    "(NUMBA_DISABLE_JIT)"
)


def _parser() -> Parser:
    parser = Parser(
        "compile",
        "Compile the kernels into the user's cache, while an image is built or a node is set up: a "
        "quarter of a minute on two cores, once for a machine, a user and a version. The same "
        "user finds them on a processor of the same kind, from any virtual environment. A job "
        "then compiles nothing of ours, neither at its start nor at its first call of what few "
        "programs call.",
        """
        cobre-comm compile                        # for all backends that can be used here
        cobre-comm compile --backends shm,tcp     # for these
        RUN cobre-comm compile                    # in a Dockerfile: docs/howto/containers.md
        """,
        "0 all is in the cache, 1 it is not, 2 wrong arguments, 130 interrupted",
    )
    parser.add_argument(
        "--backends",
        metavar="NAME,...",
        help=f"{', '.join(BUILT_IN)} (default: all that can be used here)",
    )
    return parser


def main(words: Sequence[str]) -> int:
    """Run the command; return the exit status."""
    parser = _parser()
    try:
        backends = _backends(parser.parse_args(words).backends)
    except ValueError as error:
        parser.error(str(error))
    from cobre_kernels.machine.compiling.cache_folder import refusal

    from cobre_comm.compile.warm import RARE, kernel_sets, warm_up

    if refused := refusal(os.environ):
        write_error(f"{PROG}: warning: {refused}")
    try:
        cold = warm_up([*kernel_sets(backends, os.environ, machines=2), RARE], os.environ)
    except KeyboardInterrupt:
        write_error(f"{PROG}: interrupted")
        return 130
    if cold:
        write_error(f"{PROG}: error: not in a cache: {', '.join(cold)}; {NO_PLACE}")
        return 1
    print(f"compiled: {', '.join(backends)}")
    return 0


def _backends(text: str | None) -> list[str]:
    from cobre_comm.factory import available_backends

    usable = [name for name in BUILT_IN if name in available_backends()]
    if text is None:
        return usable
    names = list(dict.fromkeys(word.strip().lower() for word in text.split(",")))
    for name in names:
        if name not in BUILT_IN:
            raise ValueError(f"--backends: {name!r} is not one of {', '.join(BUILT_IN)}")
        if name not in usable:
            raise ValueError(f"--backends: {name} cannot be used here; try `cobre-comm check`")
    return names
