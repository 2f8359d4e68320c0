"""A row of the table of cases, and the function that tries a row on ranks."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

from cobre_comm.backends import SPECS
from cobre_comm.config import LATE_VARIABLE
from cobre_comm.testing import Outcome, RankPool, RanksFailed
from cobre_comm.testing.backend_name import BackendName, node_of_ranks

BOTH = ("python", "njit")
EVERY = (*BOTH, "mixed")  # mixed: even ranks call from Python, odd ranks from compiled code
QUICK, WHOLE, NEVER = "quick", "whole", "never"


@dataclass(frozen=True)
class Slow:
    """A value that only long runs try, and ``cobre-comm check`` never tries."""

    value: Any


class Together(tuple[Any, ...]):
    """Values that are tried one after the other in one job, because each is short."""

    def __str__(self) -> str:
        return "together"


class Cell(NamedTuple):
    """One way to try a case: a value of each of its factors."""

    caller: str
    buffers: str
    arguments: tuple[Any, ...]
    name: str  # the values in one word, for the name of a test
    factors: Mapping[str, str]
    is_slow: bool


@dataclass(frozen=True)
class Settings:
    """Settings of the backends under test that a case depends on.

    Attributes
    ----------
    smallest_buffers : mapping
        Environment variables that make every transport need more than one chunk for 4 KiB.
    small_buffers : mapping
        Environment variables that make some messages of a few KiB long and others short, if a
        backend treats long and short messages differently.
    timeout_variables : mapping
        The variable that limits the wait for a live rank, by kind of backend.
    nodes : callable
        ``nodes(backend, size)`` gives the number of each rank's node; ranks of one node share
        regions.
    """

    smallest_buffers: Mapping[str, str] = field(default_factory=dict)
    small_buffers: Mapping[str, str] = field(default_factory=dict)
    timeout_variables: Mapping[str, str] = field(default_factory=dict)
    nodes: Callable[[str, int], list[int]] = node_of_ranks

    def environment(
        self, buffers: str, limit_s: float | None = None, late_s: float | None = None
    ) -> dict[str, str]:
        """Return the variables of these buffers, and the limits for every backend."""
        chosen = {"default": {}, "small": self.small_buffers, "smallest": self.smallest_buffers}
        limits = {} if limit_s is None else self.timeout_of(limit_s)
        told = {} if late_s is None else {LATE_VARIABLE: str(late_s)}
        return {**chosen[buffers], **limits, **told}

    def timeout_of(self, seconds: float) -> dict[str, str]:
        """Return, for every backend, the environment variable that sets this limit."""
        return dict.fromkeys(self.timeout_variables.values(), str(seconds))

    def timeout_variable(self, backend: str) -> str:
        """Return the variable that an error of a backend should name."""
        return self.timeout_variables[BackendName.parse(backend).kind]

    def leaders(self, backend: str, size: int) -> list[bool]:
        """Return for each rank whether it leads its node."""
        nodes = self.nodes(backend, size)
        return [nodes.index(node) == rank for rank, node in enumerate(nodes)]


OUR_BUFFERS = {f"COBRE_{kind}_BUFFER_BYTES": "4096" for kind in ("SHM", "TCP", "MPI")}
OURS = Settings(
    # Over tcp, short messages travel behind the headers, and long messages around the ring.
    smallest_buffers={**OUR_BUFFERS, "COBRE_TCP_EAGER_BYTES": "0"},
    small_buffers={**OUR_BUFFERS, "COBRE_TCP_EAGER_BYTES": "4096"},
    timeout_variables={s.name: s.timeout_variable for s in SPECS if s.timeout_variable},
)


@dataclass(frozen=True)
class Ran:
    """A case that has run: the outcome of every rank, the cell and the settings."""

    backend: str
    size: int
    cell: Cell
    settings: Settings
    outcomes: list[Outcome]

    @property
    def values(self) -> list[Any]:
        """The value of every rank, in rank order; raises if a rank returned none."""
        if not all(outcome.ok for outcome in self.outcomes):
            raise RanksFailed(self.outcomes)
        return [outcome.value for outcome in self.outcomes]


def all_return(ran: Ran) -> None:
    """Check that every rank returned; the body itself has already compared the results."""
    ran.values  # noqa: B018  # raises


@dataclass(frozen=True)
class Case:
    """A row of the table: the body of every rank, the check of results, and where it is tried."""

    name: str  # the promise, as a name of Python
    # `body(comm, caller, *arguments)` on every rank; it compares its results with the reference.
    # Without callers it is `body(comm, *arguments)`.
    body: Callable[..., Any]
    # The further arguments of the body, in their order: the values that each argument takes.
    over: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    callers: tuple[str, ...] = BOTH  # who calls; empty if the caller makes no difference
    buffers: tuple[str, ...] = ("default",)  # or "small", "smallest", as `Settings` has them
    # `expect(ran)` raises an exception unless the values of all ranks together are right.
    expect: Callable[[Ran], None] = all_return
    # The points of the grid on which the case is tried: "points", "typed" (each backend once),
    # "arguments" (few numbers of ranks), "thorough" (for cases that take long), "watchful"
    # (backends that see the end of a process at once).
    where: str = "points"
    sizes: tuple[int, ...] = ()  # numbers of ranks; if empty, the suite or `check` chooses
    needs: tuple[str, ...] = ()  # features that the backend must have
    limit_s: float | None = None  # how long a live rank is waited for
    late_s: float | None = None  # after how long a line names a late rank
    fresh: bool = False  # whether it needs a communicator of its own
    folder: bool = False  # whether the last argument is an empty folder
    check: str = WHOLE  # or QUICK, NEVER: where `cobre-comm check` tries it
    # Whether the case itself is tried at each point. If not, each point is tried by some case.
    everywhere: bool = False
    column: str = ""  # its column in the table of `cobre-comm check`; "": that of the caller
    timeout_s: float = 60.0  # deadline of all ranks
    # How often the case is tried at most, if it fails. More than once for a promise in seconds,
    # which a machine that is busy with other work breaks now and then.
    tries: int = 1

    def cells(self, callers: Sequence[str] = EVERY) -> Iterator[Cell]:
        """Yield every combination of the factors' values, for the callers that a backend has."""
        possible = [c for c in self.callers if c in callers or {*BOTH} <= {*callers}]
        factors = {
            "caller": possible if self.callers else [""],
            "buffers": self.buffers,
            **self.over,
        }
        varied = [name for name, values in factors.items() if len(values) > 1]
        for values in itertools.product(*factors.values()):
            plain = [each.value if isinstance(each, Slow) else each for each in values]
            words = {name: name_of(v) for name, v in zip(factors, plain, strict=True)}
            told = [words[name] for name in varied if name != "caller"]
            yield Cell(
                plain[0], plain[1], tuple(plain[2:]),
                "-".join(told),
                {name: words[name] for name in (*varied, "caller")},
                any(isinstance(each, Slow) for each in values),
            )  # fmt: skip


def name_of(value: Any) -> str:
    """Return a value of a factor as one word."""
    return value.name if isinstance(value, Enum) else str(value)


def perform(
    case: Case, pool: RankPool, cell: Cell, settings: Settings, timeout_s: float = 0.0
) -> None:
    """Try a cell of a case on the ranks of a pool; raise if the result is not the expected one.

    The deadline of all ranks is ``timeout_s`` or the deadline of the case, whichever is later.
    """
    for left in reversed(range(case.tries)):
        outcomes = _run(case, pool, cell, settings, max(timeout_s, case.timeout_s))
        try:
            case.expect(Ran(pool.backend, pool.size, cell, settings, outcomes))
        except AssertionError:
            if not left:
                raise
        else:
            return


def _run(
    case: Case, pool: RankPool, cell: Cell, settings: Settings, timeout_s: float
) -> list[Outcome]:
    with tempfile.TemporaryDirectory(prefix="cobre-case-") as folder:
        caller, last = [cell.caller] if case.callers else [], [folder] if case.folder else []
        lists = [each if isinstance(each, Together) else [each] for each in cell.arguments]
        several = [(*caller, *arguments, *last) for arguments in itertools.product(*lists)]
        return pool.run_outcomes(
            *([case.body, *several[0]] if len(several) == 1 else [in_turn, case.body, several]),
            timeout_s=timeout_s,
            env=settings.environment(cell.buffers, case.limit_s, case.late_s),
            fresh=case.fresh,
        )


def in_turn(comm: Any, body: Callable[..., Any], several: Sequence[Sequence[Any]]) -> list[Any]:
    """Run a body with one set of arguments after another; every rank calls this function."""
    values = []
    for arguments in several:
        try:
            values.append(body(comm, *arguments))
        except Exception as error:
            error.add_note(f"with {arguments}")
            raise
    return values
