"""Ranks that call different things all get an error that says who called what; nobody hangs."""

import pytest

from cobre_comm import CollectiveFailed, InvalidBufferSize, ReduceOp
from cobre_comm.testing.conformance.bodies import disagreement
from cobre_comm.testing.conformance.checks import check_later
from cobre_comm.testing.conformance.suite import Suite, needs

TIMEOUT_S = 10


def call(operation, length=5, **keywords):
    return operation, length, keywords


# Plans of ranks 0, 1, 2; words that every rank's message has.
PLANS = {
    "operations": (
        [call("barrier"), call("allreduce"), call("barrier")],
        ["rank 0 called barrier", "rank 1 called allreduce", "rank 2 called barrier"],
    ),
    "three operations": (
        [call("broadcast"), call("allreduce"), call("allgatherv")],
        ["rank 0 called broadcast", "rank 1 called allreduce", "rank 2 called allgatherv"],
    ),
    "barrier and long allgatherv": (
        [call("barrier"), call("allgatherv", 5000), call("allgatherv", 5000)],
        ["rank 0 called barrier", "rank 2 called allgatherv"],
    ),
    "lengths of allreduce": (
        [call("allreduce", 5), call("allreduce", 6), call("allreduce", 5)],
        ["5 elements", "6 elements"],
    ),
    "short and long allreduce": (
        [call("allreduce", 1), call("allreduce", 50_000), call("allreduce", 50_000)],
        ["1 elements", "50000 elements"],
    ),
    "same bytes, other dtype": (
        [call("allreduce", 4), call("allreduce", 4, dtype="i8"), call("allreduce", 4)],
        ["float64", "int64"],
    ),
    "ops": (
        [call("allreduce", op=ReduceOp.MIN), call("allreduce", op=ReduceOp.MAX), call("allreduce")],
        ["MIN", "MAX", "SUM"],
    ),
    "roots": (
        [call("broadcast", root=0), call("broadcast", root=1), call("broadcast", root=0)],
        ["root=0", "root=1"],
    ),
    "lengths of broadcast": (
        [call("broadcast", 5), call("broadcast", 5000), call("broadcast", 5)],
        ["40 bytes", "40000 bytes"],
    ),
    "dtypes of broadcast": (
        [call("broadcast", 5), call("broadcast", 5, dtype="i8"), call("broadcast", 5)],
        ["float64", "int64"],
    ),
    "counts": (
        [call("allgatherv", 5), call("allgatherv", 6), call("allgatherv", 5)],
        ["sends 5 elements", "sends 6 elements"],
    ),
    "dtypes of allgatherv": (
        [call("allgatherv", 5), call("allgatherv", 5, dtype="f4"), call("allgatherv", 5)],
        ["float64", "float32"],
    ),
}


class DisagreementTests(Suite):
    """Ranks that call different things."""

    @needs("disagreement")
    @pytest.mark.parametrize("name", list(PLANS))
    def test_calls(self, pools, backend, caller, name):
        plans, words = PLANS[name]
        values = pools.get(backend, 3).run(
            disagreement.disagree,
            caller,
            plans,
            env=self.grid.small_and_bounded(TIMEOUT_S),
            fresh=True,
        )
        for caught, later, took in values:
            assert isinstance(caught, (CollectiveFailed, InvalidBufferSize)), caught
            assert all(word in str(caught) for word in words), str(caught)
            check_later(later, took, str(caught))
        assert len({caught.message for caught, *_ in values}) == 1, "all ranks say the same"

    @needs("disagreement")
    def test_the_odd_one_is_at_fault(self, pools, backend):
        plans, _ = PLANS["operations"]
        values = pools.get(backend, 3).run(
            disagreement.disagree,
            "python",
            plans,
            env=self.grid.small_and_bounded(TIMEOUT_S),
            fresh=True,
        )
        assert {caught.ranks for caught, *_ in values} == {(1,)}

    @needs("disagreement", "njit")
    def test_python_and_njit_disagree_alike(self, pools, backend):
        plans, _ = PLANS["same bytes, other dtype"]
        pool = pools.get(backend, 3)
        texts = [
            str(
                pool.run(
                    disagreement.disagree,
                    caller,
                    plans,
                    env=self.grid.small_and_bounded(TIMEOUT_S),
                    fresh=True,
                )[0][0]
            )
            for caller in ("python", "njit")
        ]
        assert texts[0] == texts[1]

    @needs("disagreement")
    @pytest.mark.parametrize("which", ["counts", "displs", "swapped"])
    @pytest.mark.parametrize("size", [2, 4])
    def test_tables(self, pools, backend, caller, size, which):
        caught = pools.get(backend, size).run(
            disagreement.disagree_on_tables,
            caller,
            which,
            env=self.grid.small_and_bounded(TIMEOUT_S),
            fresh=True,
        )
        assert all(isinstance(e, (CollectiveFailed, InvalidBufferSize)) for e in caught), caught

    @needs("disagreement", "regions", "split")
    @pytest.mark.parametrize("which", ["count", "dtype", "split", "fence"])
    def test_regions(self, pools, backend, which):
        if which == "fence" and len(set(self.grid.nodes(backend, 3))) > 1:
            pytest.skip("a fence meets the ranks that share the region")
        caught = pools.get(backend, 3).run(
            disagreement.disagree_on_region,
            which,
            env=self.grid.small_and_bounded(TIMEOUT_S),
            fresh=True,
        )
        assert all(isinstance(error, CollectiveFailed) for error in caught), caught

    @needs("disagreement")
    def test_an_argument_error_on_one_rank_is_a_disagreement_on_the_others(
        self, pools, backend, caller
    ):
        values = pools.get(backend, 3).run(
            disagreement.one_bad_argument,
            caller,
            env=self.grid.small_and_bounded(TIMEOUT_S),
            fresh=True,
        )
        assert isinstance(values[0], InvalidBufferSize)
        assert all(isinstance(error, CollectiveFailed) for error in values[1:])
