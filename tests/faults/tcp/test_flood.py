"""A job starts under a flood of connections, as if there were none.

The campaign has jobs that work under one: its kind ``unauthenticated``.
"""

import threading

import pytest

from cobre_comm.testing import run_ranks_outcomes
from tests.faults.tcp import bodies
from tests.faults.tcp.clients import wait_for_port
from tests.faults.tcp.flood import Flood
from tests.faults.tcp.job import TOKEN

pytestmark = pytest.mark.slow  # each makes processes and waits; `make test` has the suite's own

SIZE = 4
CONNECTIONS = 2000
MOST_KB = 20_000  # what rank 0 may take for all of it, its links included


@pytest.mark.parametrize("seed", [1, 2])
def test_processes_start_under_a_flood(tmp_path, free_port, seed):
    port, go = free_port, tmp_path / "go"
    env = {"COBRE_TCP_PORT": str(port), "COBRE_TCP_TOKEN": TOKEN}
    outcomes, flood = run_under_flood(port, go, env, seed)
    assert [outcome.value and outcome.value[0] for outcome in outcomes] == ["met"] * SIZE, outcomes
    assert flood.total("sent") >= CONNECTIONS
    assert flood.total("refused") >= CONNECTIONS // 20  # proven ones that were wrong were told
    _, lines, grown_kb = outcomes[0].value
    assert 1 <= len(lines) <= 21
    assert not any(TOKEN in line for line in lines)
    assert grown_kb < MOST_KB


def run_under_flood(port, go, env, seed):
    """Run the ranks; the last one comes in the middle of the flood."""
    floods = []

    def attack():
        wait_for_port(port)
        with Flood(port, CONNECTIONS, TOKEN, SIZE, seed=seed) as flood:
            floods.append(flood)
            flood.wait(120.0)
        go.touch()

    thread = threading.Thread(target=attack)
    thread.start()
    try:
        outcomes = run_ranks_outcomes(
            "tcp", SIZE, bodies.meet_when, str(go), SIZE - 1, env=env, connect=False
        )
    finally:
        thread.join()
    return outcomes, floods[0]
