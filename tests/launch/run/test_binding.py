"""On which CPUs ranks run, on machines that a folder describes as Linux's sysfs does."""

import os

import pytest

from cobre_comm.processes import binding
from cobre_comm.processes.binding import Binding, auto_ranks, place
from cobre_comm.processes.environment import THREAD_VARIABLES, rank_environment
from cobre_comm.processes.job import Job
from cobre_comm.system.cpus import Core, parse_cpus, read_cores
from tests.command import python
from tests.launch.command import PROGRAMS, cobre, lines_of
from tests.sysfs import write_sysfs

ACT = PROGRAMS / "act.py"
EVERY = range(96)

needs_binding = pytest.mark.skipif(
    not hasattr(os, "sched_setaffinity"), reason="this system cannot bind"
)


def both(*ranges):
    """Return the CPUs of cores of the large machine: core n has the CPUs n and n + 48."""
    cores = [core for first, last in ranges for core in range(first, last + 1)]
    return tuple(cores + [core + 48 for core in cores])


@pytest.fixture(autouse=True)
def _no_quota(monkeypatch):
    monkeypatch.setattr(binding, "quota_cores", lambda: 10_000)


@pytest.fixture
def large(tmp_path):
    """Return the cores of a machine: 2 sockets of 24 cores, each of 2 CPUs, in 4 NUMA nodes."""
    return read_cores(write_sysfs(tmp_path), EVERY)


def test_a_large_machine(large):
    assert large[0] == Core((0, 48), numa=0, socket=0)
    assert large[47] == Core((47, 95), numa=3, socket=1)
    assert [core.numa for core in large] == [n for n in range(4) for _ in range(12)]


def test_offline_cpus_and_a_narrow_cpuset(tmp_path):
    root = write_sysfs(tmp_path, offline=(1, 49, 50))
    cores = read_cores(root, [0, 1, 2, 49, 50, 51, 90, 500])
    assert cores == [Core((0,), 0, 0), Core((2,), 0, 0), Core((51,), 0, 0), Core((90,), 3, 1)]


def test_machines_that_tell_less(tmp_path):
    root = write_sysfs(tmp_path / "without NUMA", sockets=1, numa=1, cores=2, tells_numa=False)
    assert read_cores(root, range(4)) == [Core((0, 2), 0, 0), Core((1, 3), 0, 0)]
    assert read_cores(tmp_path / "nothing", [5, 3]) == [Core((3,), 0, 0), Core((5,), 0, 0)]
    assert parse_cpus("0-2,5,7-8\n") == [0, 1, 2, 5, 7, 8]
    assert parse_cpus("\n") == []


def test_this_machine():
    found = [cpu for core in read_cores() for cpu in core.cpus]
    assert sorted(found) == sorted(getattr(os, "sched_getaffinity", lambda _: found)(0))


@pytest.mark.parametrize(
    ("ranks", "bind", "threads", "expected"),
    [
        (3, "core", None, [both((0, 0)), both((1, 1)), both((2, 2))]),
        (2, "cores", 12, [both((0, 11)), both((12, 23))]),
        (2, "cores", None, [both((0, 23)), both((24, 47))]),
        (4, "cores", None, [both((n, n + 11)) for n in (0, 12, 24, 36)]),
        (2, "socket", 4, [both((0, 23))] * 2),
        (2, "numa", 4, [both((0, 11))] * 2),
        (4, "numa", 6, [both((0, 11))] * 2 + [both((12, 23))] * 2),
        (2, "numa", 18, [both((0, 23)), both((24, 47))]),
        (1, "cores", 30, [both((0, 29))]),
        (1, "socket", 30, [both((0, 47))]),
    ],
)
def test_who_gets_which_cores(large, ranks, bind, threads, expected):
    assert list(place(ranks, bind, threads, large).cpus) == expected


def test_neighbours_are_packed_and_no_core_is_used_twice(large):
    for threads in range(1, 49):
        for ranks in range(1, 48 // threads + 1):
            given = place(ranks, "cores", threads, large).cpus
            every = [cpu for cpus in given for cpu in cpus]
            assert len(every) == len(set(every)) == 2 * threads * ranks
    eights = place(6, "cores", 8, large).cpus
    assert eights[:4] == tuple(both((n, n + 7)) for n in (0, 12, 24, 36))
    assert eights[4] == both((8, 11), (20, 23)), "the rest of a socket, not of the machine"


def test_cores_of_one_socket_come_before_those_of_two(large):
    rest = [core for core in large if core.cpus[0] not in (0, 12, 13, 24)]
    given = place(1, "cores", 23, rest).cpus
    assert given == (both((25, 47)),)


@pytest.mark.parametrize(
    ("ranks", "bind", "threads", "said"),
    [
        (4, "cores", 48, "-n 4 --threads 48 --bind cores needs 192 cores, and this process may use "
         "48 (of 96 hardware threads); ask for fewer, or say --bind none"),
        (49, "numa", 1, "needs 49 cores"),
        (2, "none", 0, "--threads must be 1 or more, got 0"),
        (2, "core", -1, "--threads must be 1 or more, got -1"),
    ],
)  # fmt: skip
def test_what_cannot_be_placed_is_one_sentence(large, ranks, bind, threads, said):
    with pytest.raises(ValueError, match=r"^[^\n]+$") as caught:
        place(ranks, bind, threads, large)
    assert said in str(caught.value)


def test_more_ranks_than_cores_share_them_if_no_threads_are_said(large):
    for bind in ("core", "cores"):
        placed = place(50, bind, None, large)
        assert placed.threads == 1
        assert placed.cpus[48:] == placed.cpus[:2]
    assert place(2, "core", 96, large) == Binding(96, (both((0, 0)), both((1, 1))))
    assert place(500, "none", 48) == Binding(48)


def test_threads(large, monkeypatch):
    def told(placed, **user):
        environment = rank_environment(Job(4, "shm"), 1, user, placed)
        return [environment[name] for name in THREAD_VARIABLES]

    assert told(place(4, "cores", None, large)) == ["12"] * 4
    assert told(place(4, "core", None, large)) == ["1"] * 4
    assert told(place(4, "none", 7)) == ["7"] * 4
    assert told(place(4, "none", 7), OMP_NUM_THREADS="3") == ["7", "7", "3", "7"]
    monkeypatch.setattr(binding, "quota_cores", lambda: 9)
    assert place(4, "cores", None, large).threads == 2


def test_as_many_ranks_as_have_cores(large):
    assert [auto_ranks(threads, large) for threads in (1, 5, 12, 48, 100)] == [48, 9, 4, 1, 1]


@needs_binding
def test_ranks_of_a_job_are_placed():
    cores = read_cores()
    done = cobre("run", "-n", len(cores), "--threads", 1, "--bind", "cores", ACT, "affinity")
    for rank, core in enumerate(cores):
        assert lines_of(done.stdout, rank) == [f"cores {list(core.cpus)}"]
    many = len(cores) + 1
    done = cobre("run", "-n", many, "--threads", 1, "--bind", "socket", ACT, "affinity")
    assert done.returncode == 2
    assert f"-n {many} --threads 1 --bind socket needs {many} cores" in done.stderr


BEFORE = {
    "": "prepare_or_exit",  # the rank is a fork
    # the rank is started by the shim
    "threading.Thread(target=time.sleep, args=[9], daemon=True).start(); ": "main",
    "memory = b'1' * 2**29; ": "main",
}


@needs_binding
@pytest.mark.parametrize("before", BEFORE)
def test_a_rank_that_cannot_be_bound_says_so_whoever_starts_it(before):
    begin = 'start([sys.executable, "-c", "print(1)"], [4095])'
    imports = "import sys, threading, time; from cobre_comm.processes.interpreter import start; "
    done = python("-c", f"{imports}{before}sys.exit({begin}.wait())", code=1)
    assert f"in {BEFORE[before]}\n" in done.stderr
    assert "sched_setaffinity" in done.stderr
    assert "1" not in done.stdout
