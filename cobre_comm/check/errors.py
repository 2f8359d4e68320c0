"""Wrong arguments, ranks that disagree, and a rank that is killed."""

# The bodies that the suite ships are not annotated.
# mypy: allow-untyped-calls

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from cobre_comm.check.collectives import run, tried
from cobre_comm.check.result import TIMEOUT_S, Check, CheckFailed
from cobre_comm.errors import CollectiveFailed, InvalidBufferSize
from cobre_comm.testing.backend_name import BackendName
from cobre_comm.testing.conformance.bodies import disagreement, errors, exact, lost, misuse
from cobre_comm.testing.conformance.checks import check_survivors
from cobre_comm.testing.ranks.pool import RankPool
from cobre_comm.testing.ranks.surroundings import leftovers

OPERATIONS = ("allgatherv", "allreduce", "broadcast")


def checks(size: int, *, callers: tuple[str, ...], quick: bool) -> Iterator[Check]:
    """Yield what is checked of errors."""
    for caller in callers:
        if caller == "python" or not quick:
            for operation in OPERATIONS:
                does = tried(misuse.wrong_arguments, caller, operation)
                yield Check("errors", f"wrong arguments of {operation} ({caller})", does)
        yield Check(
            "errors", f"wrong values of exact_sum ({caller})", tried(exact.wrong_values, caller)
        )
        yield Check(
            "errors",
            f"fields of errors ({caller})",
            tried(misuse.fields_of_argument_errors, caller),
        )
        yield Check("errors", f"closed communicator ({caller})", partial(_closed, caller))
        if size > 1:
            yield Check("errors", f"ranks disagree ({caller})", partial(_disagree, caller))
            yield Check("errors", f"refused on one rank ({caller})", partial(_refused, caller))
    yield Check("errors", "arguments that only Python has", tried(misuse.wrong_python_arguments))
    if "njit" in callers and not quick:
        yield Check(
            "errors",
            "caught in compiled code",
            tried(misuse.try_except_in_compiled_code, fresh=True),
        )


def endings(backend: str, size: int, *, quick: bool) -> Iterator[Check]:
    """Yield what is checked of the end of ranks; it comes last, for it ends them."""
    # Across nodes MPI does not tell, so such ranks meet a timeout instead.
    if size > 1 and not BackendName.parse(backend).nodes:
        kills: list[tuple[str, str]] = [("allreduce", "njit")]
        kills += [] if quick else [("barrier", "python")]
        for operation, caller in kills:
            name = f"named by the others, which wait in {operation} ({caller})"
            yield Check("killed", name, partial(_killed, caller, operation))
    yield Check("killed", "nothing is left in shared memory", _nothing_left)


def _closed(caller: str, pool: RankPool) -> None:
    # In compiled code over local, all but allgatherv compile to nothing, or to a copy.
    is_nothing = caller == "njit" and pool.backend == "local"
    right = {"allgatherv"} if is_nothing else {*OPERATIONS, "barrier"}
    told = set(run(pool, misuse.closed, caller, fresh=True)[0])
    if not right <= told:
        raise CheckFailed(f"after close(), {', '.join(sorted(right - told))} raised no error")


def _disagree(caller: str, pool: RankPool) -> None:
    """All learn who called what, in the same words."""
    plans: list[tuple[str, int, dict[str, object]]] = [("barrier", 5, {}), ("allreduce", 5, {})]
    told = [caught for caught, *_ in run(pool, disagreement.disagree, caller, plans, fresh=True)]
    words = ("rank 0 called barrier", "rank 1 called allreduce")
    for rank, error in enumerate(told):
        is_right = isinstance(error, (CollectiveFailed, InvalidBufferSize))
        if not is_right or not all(word in str(error) for word in words):
            raise CheckFailed(f"rank {rank} does not learn who called what: {error!r}")
    if len({error.message for error in told}) > 1:
        raise CheckFailed(f"ranks are told different things: {told}")


def _refused(caller: str, pool: RankPool) -> None:
    """One rank's arguments are wrong, and the others do not wait for it."""
    told = run(pool, errors.refused_on_one, caller, "InvalidBufferSize", "barrier", fresh=True)
    if not isinstance(told[1], InvalidBufferSize):
        raise CheckFailed(f"rank 1 should get InvalidBufferSize, gets {told[1]!r}")
    for rank, error in enumerate(told):
        if rank != 1 and not (isinstance(error, CollectiveFailed) and 1 in error.ranks):
            raise CheckFailed(f"rank {rank} should learn that rank 1 is at fault: {error!r}")


def _killed(caller: str, operation: str, pool: RankPool) -> None:
    victim = pool.size - 1
    body: Callable[..., object] = lost.wait_for_the_lost
    arguments = (caller, operation, victim, "kill")
    outcomes = pool.run_outcomes(body, *arguments, fresh=True, timeout_s=TIMEOUT_S)
    check_survivors(outcomes, [victim], None, operation)
    if outcomes[victim].exit_code != -9:
        raise CheckFailed(f"rank {victim} was killed: {outcomes[victim].describe()}")


def _nothing_left(pool: RankPool) -> None:
    pool.close()
    if left := leftovers():
        raise CheckFailed(f"these names were left: {', '.join(left)}")
