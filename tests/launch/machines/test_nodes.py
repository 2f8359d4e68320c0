"""The variables of ranks in a job of several nodes, and the command lines that are refused."""

import os
from argparse import Namespace

import pytest

from cobre_comm.processes.binding import Binding
from cobre_comm.processes.environment import rank_environment
from cobre_comm.run.nodes import job_on_nodes, parse_coordinator
from cobre_comm.system.cores import usable_cores
from tests.launch.command import PROGRAMS, cobre, lines_of

ACT = PROGRAMS / "act.py"
TOKEN = "0123456789abcdef"
TWO = ["run", "-n", 2, "--nnodes", 2]
TOLD = {"COBRE_TCP_TOKEN": TOKEN}


def job(nodes=2, node=1, coordinator="there", environ=TOLD, ranks=3, **rest):
    options = {"nnodes": nodes, "node_rank": node, "coordinator": coordinator, "size": ranks}
    options |= {"backend": "auto", "timeout": None, "max_restarts": 0, **rest}
    return job_on_nodes(Namespace(**options), environ)


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("n17", "n17", 29500),
        ("n17.cluster.example:4000", "n17.cluster.example", 4000),
        ("10.0.0.7", "10.0.0.7", 29500),
        ("10.0.0.7:65535", "10.0.0.7", 65535),
        ("fd00::7", "fd00::7", 29500),
        ("[fd00::7]", "fd00::7", 29500),
        ("[fd00::7]:4000", "fd00::7", 4000),
        ("[fe80::7%eth0]:4000", "fe80::7%eth0", 4000),
    ],
)
def test_ways_to_write_the_coordinator(text, host, port):
    assert parse_coordinator(text) == (host, port)


@pytest.mark.parametrize(
    "text",
    ["", ":4000", "n17:", "n17:0", "n17:65536", "n17:http", "n17:+1", "n17:1:2", "tcp://n17:4000",
     "n 17", "[n17]:4000", "[fd00::7", "fd00::7]:4000", "[]:4000", "n17:²"],
)  # fmt: skip
def test_what_is_not_a_coordinator(text):
    with pytest.raises(ValueError, match=r"takes HOST, HOST:PORT or \[IPv6\]:PORT, got"):
        parse_coordinator(text)


@pytest.mark.parametrize(
    ("coordinator", "listens"),
    [
        ("n17", "0.0.0.0"),
        ("10.0.0.7:4000", "0.0.0.0"),
        ("fd00::7", "::"),
        ("127.0.0.1", "127.0.0.1"),
        ("[::1]:4000", "::1"),
    ],
)
def test_where_rank_0_listens(coordinator, listens):
    assert job(coordinator=coordinator).rendezvous.bind_addr == listens
    chosen = job(coordinator=coordinator, environ=TOLD | {"COBRE_TCP_BIND_ADDR": "10.1.1.1"})
    assert chosen.rendezvous.bind_addr == "10.1.1.1"


def test_each_node_starts_its_share():
    shares = [job(nodes=3, node=node, ranks=2) for node in range(3)]
    assert [list(share.ranks) for share in shares] == [[0, 1], [2, 3], [4, 5]]
    assert {share.size for share in shares} == {6}
    assert {share.token for share in shares} == {TOKEN}


def test_cores_are_shared_by_the_ranks_of_a_node_alone():
    cores = usable_cores()
    many = job(nodes=50, node=7, ranks=cores)
    assert rank_environment(many, 7 * cores, {})["OMP_NUM_THREADS"] == "1"
    assert (
        rank_environment(many, 7 * cores, {}, Binding(1, ((0,),) * cores))["COBRE_COMM_SPIN_US"]
        == "30"
    )
    assert rank_environment(many, 7 * cores, {"COBRE_TCP_CONNECT_TIMEOUT_MS": "5"})[
        "COBRE_TCP_CONNECT_TIMEOUT_MS"
    ] == "5"  # fmt: skip


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system cannot bind")
def test_ranks_are_bound_by_their_place_on_the_node():
    cores = sorted(os.sched_getaffinity(0))
    done = cobre("run", "-n", 1, "--nnodes", 2, "--node-rank", 1, "--coordinator", "127.0.0.1",
                 "--bind", "core", ACT, "affinity", **TOLD, NUMBA_DISABLE_JIT="1")  # fmt: skip
    assert lines_of(done.stdout, 1) == [f"cores [{cores[0]}]"]


def test_last_words_are_those_of_the_right_rank():
    done = cobre(*TWO, "--node-rank", 1, "--coordinator", "127.0.0.1", ACT, "raise", 3,
                 **TOLD, NUMBA_DISABLE_JIT="1")  # fmt: skip
    assert done.returncode == 1
    *_, traceback, last = done.stderr.splitlines()
    assert traceback == "    ValueError: bad number on rank 3"
    assert last == "cobre-comm: rank 3 exited with code 1"


def test_one_node_needs_nothing_else():
    alone = job(nodes=1, node=None, coordinator=None, environ={}, ranks=2)
    assert (alone.backend, alone.size, alone.rendezvous) == ("tcp", 2, None)
    assert len(alone.token) == 64
    told = job(nodes=1, node=0, coordinator="n17:4000", ranks=2)
    assert told.rendezvous is None
    assert told.token != TOKEN


NODE_1 = [*TWO, "--node-rank", 1]
THERE = [*NODE_1, "--coordinator", "there"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([*TWO[:-1], 0, ACT], "--nnodes must be 1 or more, got 0"),
        ([*TWO, ACT], "--nnodes 2 needs --node-rank: 0 on one machine, 1 on the next"),
        ([*TWO, "--node-rank", 2, ACT], "--node-rank must be between 0 and 1, got 2"),
        ([*TWO, "--node-rank", -1, ACT], "--node-rank must be between 0 and 1, got -1"),
        (
            [*NODE_1, ACT],
            "--nnodes 2 needs --coordinator HOST[:PORT]: the machine of --node-rank 0",
        ),
        ([*NODE_1, "--coordinator", "n17:0", ACT], "--coordinator takes HOST, HOST:PORT or"),
        (
            [*THERE, ACT],
            "needs a secret that all its launchers know; make it once, by `export COBRE",
        ),
        ([*THERE, "--max-restarts", 1, ACT], "--max-restarts is for a job of one machine; Slurm"),
        ([*THERE, "--backend", "shm", ACT], "--nnodes needs backend tcp, not 'shm'; leave"),
        ([*THERE, "--backend", "smoke", ACT], "there is no backend 'smoke'"),
        (["run", "-n", 4096, *THERE[3:], ACT], "between 1 and 4096, got 8192"),
        (["run", "-n", 2, "--node-rank", 0, ACT], "--node-rank is for a job on several machines"),
        (["run", "-n", 2, "--coordinator", "a", ACT], "--coordinator is for a job on several"),
    ],
)
def test_bad_places_are_one_line_and_status_2(words, said, refusal, monkeypatch):
    monkeypatch.delenv("COBRE_TCP_TOKEN", raising=False)
    assert said in refusal(words)


def test_the_secret_is_never_shown():
    assert TOKEN not in repr(job())
