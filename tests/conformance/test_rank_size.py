from tests.conformance.bodies import sync


def test_rank_size_leader_and_backend(pool):
    seen = pool.run(sync.identity)
    assert [rank for rank, *_ in seen] == list(range(pool.size))
    assert {(size, backend) for _, size, _, backend in seen} == {(pool.size, pool.backend)}
    is_shared = pool.backend == "shm"
    assert [leader for _, _, leader, _ in seen] == [r == 0 or not is_shared for r, *_ in seen]
