"""``COBRE_COMM_TRACE``: every call of every rank, in files that Perfetto opens."""

import bisect
import itertools
import json
import os
import re
import signal
import socket
from decimal import Decimal

import pytest

from cobre_comm import WorkerError, launch
from cobre_comm.journal.chrome import ROW_BYTES, add_what_is_left, header_bytes
from tests.command import python
from tests.grid import slow
from tests.launch.command import PROGRAMS, Running, cobre, environment
from tests.launch.mpi_libraries import needs

TRACED, PHASES = PROGRAMS / "traced.py", PROGRAMS / "phases.py"
STEPS = 1500  # steps of phases.py: so many that spans and calls do not fit into memory
TIMES, FEW = 10_000, 100  # numbers of calls: twice as many as fit into memory, and few
APART_US = 1000  # on a busy machine, two readings of clocks may differ by this much


def run(folder, *words, backend="shm", ranks=2, times=TIMES):
    return cobre("run", "-n", ranks, "--backend", backend, TRACED, times, *words,
                 COBRE_COMM_TRACE=str(folder))  # fmt: skip


def files_of(folder, rank):
    return sorted(folder.glob(f"cobre-*.rank-{rank}.json"))


def ranks_in(folder):
    """Return the names of a trace's files, without the name of the one job that wrote them."""
    names = [path.name.split(".", 1) for path in folder.iterdir()]
    assert len({job for job, _ in names}) == 1
    return sorted(rank for _, rank in names)


def calls_of(folder, rank, communicator=0):
    [path] = files_of(folder, rank)
    # As decimal numbers, because float64 cannot hold a time to the nanosecond.
    events = json.loads(path.read_text(), parse_float=Decimal)
    assert {event["pid"] for event in events} == {rank}
    own = [event for event in events if event["ph"] == "X" and event["tid"] == communicator]
    return [event for event in own if "args" in event], events


@pytest.mark.parametrize("backend", [slow("shm"), "tcp"])
def test_every_call_of_a_loop_is_there_at_its_time(tmp_path, backend):
    folder = tmp_path / "new" / "trace"
    done = run(folder, "compiled", backend=backend)
    assert (done.returncode, done.stderr) == (0, "")
    assert ranks_in(folder) == ["rank-0.json", "rank-1.json"]
    (mine, events), (others, _) = (calls_of(folder, rank) for rank in (0, 1))
    assert [call["args"]["call"] for call in mine] == list(range(1, len(mine) + 1))
    assert [call["name"] for call in mine[: TIMES + 1]] == ["barrier"] * TIMES + ["allreduce"]
    expected = {"count": 4, "bytes": 32, "dtype": "float64", "argument": "SUM"}
    assert mine[TIMES]["args"].items() >= expected.items()
    alone = 0
    for one, other in zip(mine, others, strict=True):
        assert one["args"]["call"] == other["args"]["call"]
        ends = [call["ts"] + call["dur"] for call in (one, other)]
        alone += min(ends) < max(one["ts"], other["ts"]) - APART_US
    # A rank notes a call after it has entered the call. The note is late if the rank loses its core
    # in between.
    assert alone < TIMES // 100, f"in {alone} calls a rank left before the other had come"
    assert {event["args"]["name"] for event in events if event["name"] == "thread_name"} == {
        "communicator 0: rank 0 of 2",
        "communicator 1: rank 0 of 2",
    }
    assert any(re.fullmatch(r"wait for rank 1", event["name"]) for event in events)


def test_calls_for_which_there_is_no_room_are_counted(tmp_path):
    done = run(tmp_path, "no room")
    assert done.returncode == 0
    calls, events = calls_of(tmp_path, 0)
    [name] = [e["args"]["name"] for e in events if e["name"] == "process_name" and e["tid"] == 0]
    missing = re.search(r": (\d+) calls are missing", name)
    assert 0 < len(calls) < TIMES
    assert calls[-1]["args"]["call"] == len(calls)
    assert len(calls) + int(missing[1]) > TIMES
    assert f"trace of rank 0: {missing[1]} calls are missing" in done.stderr


def test_a_rank_that_is_killed_leaves_a_trace_and_the_others_their_failed_call(tmp_path):
    assert run(tmp_path, "killed").returncode == 137
    calls, events = calls_of(tmp_path, 1)
    assert len(calls) > TIMES // 2
    assert any("its process was killed" in str(event) for event in events)
    _, events = calls_of(tmp_path, 0)
    assert any(event["name"] == "barrier (failed)" for event in events)


def spans_of(folder, rank):
    """Return (name, begin, end) of the phases of a rank, in their order."""
    _, events = calls_of(folder, rank)
    phases = [event for event in events if event.get("cat") == "phase"]
    return sorted((e["ts"], e["ts"] + e["dur"], e["name"]) for e in phases)


@pytest.mark.parametrize("way", ["", slow("killed")])
def test_phases_are_spans_with_their_calls_inside(tmp_path, way):
    done = cobre(
        "run", "-n", 2, "--backend", "shm", PHASES, way,
        COBRE_COMM_TRACE=str(tmp_path), COBRE_COMM_STATS="1",
    )  # fmt: skip
    assert done.returncode == (137 if way else 0)
    for rank in range(2):
        spans = spans_of(tmp_path, rank)
        expected = [*(["forward", "backward"] * STEPS), "killed"]
        if way == "killed" and rank == 1:  # the last rows of the killed rank are lost
            assert len(spans) > STEPS // 2
            expected = expected[: len(spans)]
        assert [name for *_, name in spans] == expected
        assert all(one[1] <= other[0] for one, other in itertools.pairwise(spans)), spans
        calls, _ = calls_of(tmp_path, rank)
        begins, inside = [begin for begin, *_ in spans], [0] * len(spans)
        for call in calls:
            at = bisect.bisect(begins, call["ts"]) - 1
            inside[at] += at >= 0 and call["ts"] + call["dur"] <= spans[at][1]
        if spans[-1][-1] == "killed":
            del inside[-1]
        assert inside == ([1, 2] * STEPS)[: len(inside)]
    rows = [line.split() for line in done.stderr.splitlines() if line.startswith("[0]")]
    names = [row[1] for row in rows if row[-1] == "%"]
    assert names == ["forward", "backward", "killed", "outside"]


def one_is_killed(comm):
    comm.barrier()
    if comm.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    comm.barrier()


def test_a_killed_worker_of_launch_leaves_a_trace(tmp_path, monkeypatch):
    monkeypatch.setenv("COBRE_COMM_TRACE", str(tmp_path))
    with pytest.raises(WorkerError):
        launch(one_is_killed, 2, backend="shm")
    assert ranks_in(tmp_path) == ["rank-0.json", "rank-1.json"]
    assert "its process was killed" in files_of(tmp_path, 1)[0].read_text()


def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path):
    (tmp_path / "file").touch()
    done = run(tmp_path / "file", ranks=1, times=FEW)
    said = f"COBRE_COMM_TRACE={tmp_path}/file: File exists; name a folder of yours\n"
    assert said in done.stderr


def test_jobs_that_share_a_folder_keep_their_calls(tmp_path):
    """A short job begins and ends while a longer job runs."""
    folder, go = tmp_path / "trace", tmp_path / "go"
    extra = {"COBRE_COMM_TRACE": str(folder)}
    with Running("run", "-n", 2, TRACED, 1000, "awaits", go, extra=extra) as longer:
        longer.wait_ready(2)
        assert run(folder, times=FEW).returncode == 0
        go.touch()
        assert longer.finish()[0] == 0
    for rank in range(2):
        jobs = [json.loads(path.read_text()) for path in files_of(folder, rank)]
        counts = [sum(e["name"] == "barrier" for e in events) for events in jobs]
        # Beside these barriers there is one at the end, and one in the communicator of the node.
        assert sorted(counts) == [FEW + 2, 1000 + 2]


def test_processes_that_have_one_name_keep_their_calls(tmp_path):
    program = "from cobre_comm import create_communicator as make; [make().close() for _ in '{}']"
    for times in ("x", "xx"):
        python("-c", program.format(times), env=environment(COBRE_COMM_TRACE=str(tmp_path)))
    first, second = sorted(tmp_path.iterdir(), key=lambda path: len(path.name))
    assert first.name == "rank-0.json"
    assert re.fullmatch(
        rf"rank-0-{re.escape(socket.gethostname())}-\d+-[0-9a-f]{{8}}\.json", second.name
    )
    counts = [path.read_text().count('"thread_name"') for path in (first, second)]
    assert counts == [1, 2]


MOVES = """
import os, sys
os.chdir(sys.argv[1])
from cobre_comm import create_communicator, launch

def work(comm):
    comm.barrier()
    os.chdir("/")
    with comm.split_local() as node:
        node.barrier()
    comm.barrier()

if __name__ == "__main__":
    if sys.argv[2] == "launch":
        launch(work, 2)
    else:
        os.chdir(sys.argv[2])
        with create_communicator() as comm:
            work(comm)
"""


@pytest.mark.parametrize("how", ["shm", "mpi", "launch", "alone"])
def test_a_relative_folder_stays_where_the_first_reader_was(how, tmp_path):
    chosen = needs("openmpi") if how == "mpi" else {}
    program, place, begin = tmp_path / "moves.py", tmp_path / "here", tmp_path / "begin"
    program.write_text(MOVES)
    for folder in (place, begin):
        folder.mkdir()
    extra = {"COBRE_COMM_TRACE": "trace", **chosen}
    if how in ("launch", "alone"):
        words = (program, begin, how if how == "launch" else ".")
        done = python(*map(str, words), env=environment(**extra), cwd=place)
        found = begin
    else:
        words = "run", "-n", 2, "--backend", how, program, tmp_path, begin
        done = cobre(*words, cwd=place, **extra)
        found = place
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    ranks = 1 if how == "alone" else 2
    files = sorted((found / "trace").iterdir())
    assert [path.suffix for path in files] == [".json"] * ranks
    for rank, path in enumerate(files):
        events = json.loads(path.read_text())
        assert {event["tid"] for event in events if event["ph"] == "X"} == {0, 1}, rank
        assert "killed" not in path.read_text()
    assert list(tmp_path.rglob("*.calls")) == []


STRAY = {
    "empty": b"",
    "no line": bytes(100),
    "no JSON": b"calls\n",
    "another line": b'["rank"]\n',
    "no rows": header_bytes(dict.fromkeys(("rank", "communicator", "size", "own_rank", "host",
                                           "pid", "unix_ns"), 1)),
}  # fmt: skip


@pytest.mark.parametrize("held", [*STRAY, "fifo", "folder"])
def test_a_file_that_is_no_trace_is_named_and_left(held, tmp_path, caplog):
    stray, good = tmp_path / "job.rank-0.7.calls", tmp_path / "job.rank-1.0.calls"
    if held == "fifo":
        os.mkfifo(stray)
    elif held == "folder":
        stray.mkdir()
    else:
        stray.write_bytes(STRAY[held])
    about = json.loads(STRAY["no rows"])
    good.write_bytes(header_bytes({**about, "rank": 1}) + bytes(ROW_BYTES))
    add_what_is_left(tmp_path, "job", [0, 1])
    [line] = caplog.messages
    assert line.startswith(f"the trace of rank 0 stays in {stray}: it ")
    assert sorted(path.name for path in tmp_path.iterdir()) == [stray.name, "job.rank-1.json"]


def test_a_stray_file_fails_no_job(tmp_path):
    (tmp_path / "rank-0.7.calls").touch()
    assert run(tmp_path, times=FEW).returncode == 0
    assert len(list(tmp_path.iterdir())) == 3
