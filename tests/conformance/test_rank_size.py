from cobre_comm.testing import BackendName, leaders
from tests.conformance.bodies import sync


def test_rank_size_leader_and_backend(pool):
    seen = pool.run(sync.identity)
    assert [rank for rank, *_ in seen] == list(range(pool.size))
    kind = BackendName.parse(pool.backend).kind
    assert {(size, backend) for _, size, _, backend in seen} == {(pool.size, kind)}
    assert [leader for _, _, leader, _ in seen] == leaders(pool.backend, pool.size)
