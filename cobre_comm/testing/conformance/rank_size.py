"""Tests of rank and size."""

from cobre_comm import available_backends
from cobre_comm.testing.backend_name import BackendName
from cobre_comm.testing.conformance.bodies import sync
from cobre_comm.testing.conformance.suite import Suite


class RankSizeTests(Suite):
    """Who this rank is."""

    def test_available_backends_lists_it(self, backend):
        assert BackendName.parse(backend).kind in available_backends()

    def test_rank_size_leader_and_backend(self, pool, caller):
        seen = pool.run(sync.identity, caller)
        assert [rank for rank, *_ in seen] == list(range(pool.size))
        kind = BackendName.parse(pool.backend).kind
        assert {(size, backend) for _, size, _, backend in seen} == {(pool.size, kind)}
        assert [leader for _, _, leader, _ in seen] == self.grid.leaders(pool.backend, pool.size)
