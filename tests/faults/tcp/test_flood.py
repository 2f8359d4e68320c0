"""A job starts, and works, under a flood of connections, as if there were none."""

import contextlib
import threading
import time

import pytest

from cobre_comm.testing import run_ranks_outcomes
from tests.faults.tcp import bodies
from tests.faults.tcp.flood import Flood, wait_for_port
from tests.faults.tcp.job import TOKEN

pytestmark = pytest.mark.slow  # each makes processes and waits; `make test` has the suite's own

SIZE = 4
CONNECTIONS = 2000
ENDLESS = 10**9
AT_WORKERS = 50  # connections at each worker's own port, those that are answered late
LATE_RANK = SIZE - 1
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


@pytest.mark.parametrize("token", [TOKEN, ""])
def test_job_works_under_a_flood(tmp_path, free_port, token):
    """It begins in the middle of it; all collectives are right, during it and afterwards."""
    port = free_port
    env = {
        "COBRE_TCP_PORT": str(port),
        "COBRE_TCP_BIND_ADDR": "127.0.0.1",
        "COBRE_TCP_TOKEN": token,
        "COBRE_TCP_TIMEOUT_SECS": "20",
    }
    floods, errors = [], []
    attack = threading.Thread(target=flood_all, args=(port, token, tmp_path, floods, errors))
    attack.start()
    try:
        outcomes = run_ranks_outcomes(
            "tcp", SIZE, bodies.work_when, str(tmp_path), LATE_RANK, env=env, connect=False
        )
    finally:
        (tmp_path / "stop").touch()
        attack.join()
    assert errors == []
    assert all(outcome.ok for outcome in outcomes), outcomes
    assert outcomes[0].value > 1  # rounds while the flood went on
    at_rank_0, *at_workers = floods
    assert at_rank_0.total("sent") >= CONNECTIONS
    assert at_rank_0.total("too_late") > 0
    assert all(flood.total("sent") >= AT_WORKERS for flood in at_workers)


def flood_all(port, token, folder, floods, errors):
    """Flood rank 0 from before the job meets until it has worked for a while, workers meanwhile."""

    def until(done):
        while not (done() or (folder / "stop").exists()):
            time.sleep(0.01)

    try:
        with contextlib.ExitStack() as stack:
            for number in range(LATE_RANK):
                where, limit_s = port, 2.0
                if number > 0:  # a worker does not answer before all have come
                    until((folder / f"port {number}").exists)
                    where, limit_s = int((folder / f"port {number}").read_text()), 0.1
                wait_for_port(where)
                flood = Flood(where, ENDLESS, token, SIZE, limit_s=limit_s)
                floods.append(stack.enter_context(flood))
            until(lambda: floods[0].total("sent") >= CONNECTIONS)
            until(lambda: min(flood.total("sent") for flood in floods) >= AT_WORKERS)
            (folder / "go").touch()
            until(lambda: all((folder / f"began {rank}").exists() for rank in range(SIZE)))
            time.sleep(1.0)
    except BaseException as error:
        errors.append(error)
    (folder / "over").touch()
