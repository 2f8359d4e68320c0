import os
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import psutil
import pytest

from cobre_comm.processes.loop import NEVER, LauncherLoop
from cobre_comm.run.output.lines import Screen, Stream, rank_prefix
from cobre_comm.run.output.outlet import FULL_BYTES, Outlet
from cobre_comm.run.output.relay import Relay
from cobre_comm.system.cores import usable_cores
from cobre_comm.testing.cases.waiting import wait_until
from tests.command import run
from tests.launch.command import (
    COMMAND,
    PROGRAMS,
    cobre,
    environment,
    lines_of,
)

ACT = PROGRAMS / "act.py"


class FakeOutlet(SimpleNamespace):
    def __init__(self, is_terminal):
        super().__init__(is_terminal=is_terminal, text=b"")

    def put(self, data):
        self.text += data


def streams(is_terminal, ranks=2):
    outlet, screen = FakeOutlet(is_terminal), Screen()
    return outlet, [Stream(outlet, b"[%d] " % rank, screen) for rank in range(ranks)]


def test_every_line_has_the_rank_in_front_and_stays_whole():
    done = cobre("run", "-n", 3, ACT, "lines", 300)
    assert done.returncode == 0
    for rank in range(3):
        expected = [f"rank {rank} line {n} " + "x" * (n % 70) for n in range(300)]
        assert lines_of(done.stdout, rank) == expected
        assert lines_of(done.stderr, rank) == [f"error {rank} line {n}" for n in range(300)]
    assert len(done.stdout.splitlines()) == len(done.stderr.splitlines()) == 900


def test_unfinished_last_line_is_kept_whole():
    done = cobre("run", "-n", 3, ACT, "pieces")
    assert sorted(done.stdout.splitlines()) == [f"[{r}] a rank {r} speaks slowly" for r in range(3)]


def test_prefix_can_be_left_out_and_is_left_out_for_one_rank():
    assert cobre("run", "-n", 1, ACT, "pieces").stdout == "a rank 0 speaks slowly"
    done = cobre("run", "-n", 2, "--no-prefix", ACT, "pieces")
    assert sorted(done.stdout.splitlines()) == ["a rank 0 speaks slowly", "a rank 1 speaks slowly"]


def test_the_traceback_of_a_forked_child_is_shown():
    """The child is no rank, so the launcher does not learn how the child has ended."""
    done = cobre("run", "-n", 2, ACT, "fork")
    assert done.returncode == 0
    for rank in range(2):
        assert (
            lines_of(done.stderr, rank)[-1] == f"ValueError: bad number in a child of rank {rank}"
        )


def test_each_rank_has_a_file_and_quiet_ones_nothing_else(tmp_path):
    folder = tmp_path / "new" / "logs"
    done = cobre("run", "-n", 3, "--log-dir", folder, "--quiet-ranks", "1-", ACT, "lines", 20)
    assert done.returncode == 0
    assert {line[:4] for line in (done.stdout + done.stderr).splitlines()} == {"[0] "}
    for rank in range(3):
        written = (folder / f"rank-{rank}.log").read_text().splitlines()
        expected = [f"rank {rank} line {n} " + "x" * (n % 70) for n in range(20)]
        assert [line for line in written if line.startswith("rank")] == expected
        assert len(written) == 40


def test_streams_of_one_file_do_not_cut_each_others_lines():
    written = []
    log, outlet = SimpleNamespace(write=written.append), FakeOutlet(is_terminal=False)
    out, err = (Stream(outlet, b"", Screen(), log) for _ in range(2))
    for stream, data in ((out, b"a li"), (err, b"an error"), (out, b"ne\nthe r"), (err, b"\n")):
        stream.feed(data)
    assert written == [b"a line\n", b"an error\n"]
    out.finish()
    assert written[2:] == [b"the r"]


def test_the_error_of_a_quiet_rank_is_shown_and_a_full_disk_ends_nothing(tmp_path):
    (tmp_path / "rank-0.log").symlink_to("/dev/full")
    done = cobre("run", "-n", 2, "--quiet-ranks", "0,1", "--log-dir", tmp_path, ACT, "raise", 1)
    assert (done.returncode, done.stdout) == (1, "")
    incomplete, *_, cause, last = done.stderr.splitlines()
    assert incomplete.endswith("rank-0.log is incomplete: No space left on device")
    assert cause == "    ValueError: bad number on rank 1"
    assert last == "cobre-comm: rank 1 exited with code 1"
    assert "ready 0" not in done.stderr
    assert "ValueError" in (tmp_path / "rank-1.log").read_text()


FULL = "No space left on device"


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("lines", [1, 5_000])
@pytest.mark.parametrize("where", [">/dev/full", "2>/dev/full", ">/dev/full 2>&1"])
def test_output_that_a_full_disk_does_not_take_is_no_success(where, lines, ranks):
    words = "sh", *COMMAND, "run", "-n", str(ranks), str(ACT), "lines", str(lines)
    done = run("sh", "-c", f'"$@" {where}', *words, code=1, env=environment())
    if ranks == 1:  # a single rank writes to the file itself, and gets the error
        assert FULL in done.stdout + done.stderr or "2>&1" in where
    else:
        said = {">/dev/full": done.stderr, "2>/dev/full": done.stdout}.get(where, "")
        name = "stderr" if where.startswith("2") else "stdout"
        assert said.endswith(f"cobre-comm: {name} is incomplete: {FULL}\n") or "2>&1" in where


def test_a_log_file_that_a_full_disk_does_not_take_is_no_success(tmp_path):
    (tmp_path / "rank-1.log").symlink_to("/dev/full")
    done = cobre("run", "-n", 2, "--quiet-ranks", "0,1", "--log-dir", tmp_path, ACT, "pieces")
    expected = f"cobre-comm: {tmp_path}/rank-1.log is incomplete: {FULL}\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", expected)


@pytest.mark.parametrize("ranks", [1, 2])
def test_ranks_have_a_terminal_where_that_is_asked_for(ranks):
    done = cobre("run", "-n", ranks, "--tty", ACT, "terminal", COLUMNS="80")
    assert done.returncode == 0
    for rank in range(ranks):
        prefix = f"[{rank}] " if ranks > 1 else ""
        columns = 80 - len(prefix)
        # A progress bar ends a line by \r, which text mode reads as \n.
        assert f"{prefix}50%\n{prefix}terminal True {columns}\n" in done.stdout
        assert f"{prefix}terminal True {columns}\n" in done.stderr
    assert done.stdout.count("\n") == 2 * done.stderr.count("\n") == 2 * ranks


def test_as_many_ranks_as_cores():
    done = cobre("run", "-n", "auto", "--no-prefix", ACT, "pieces")
    assert done.stdout.count("speaks") == usable_cores()


@pytest.mark.parametrize("ranks", [1, 2])
def test_only_rank_0_gets_stdin(ranks):
    done = cobre("run", "-n", ranks, "--no-prefix", ACT, "read", stdin="some\ntext")
    expected = ["read ''"] * (ranks - 1) + ["read 'some\\ntext'"]
    assert sorted(done.stdout.splitlines()) == expected


def flooding(lines, descriptor=1):
    """Start two ranks: rank 1 writes many lines of 10,000 bytes, rank 0 writes one."""
    command = [*COMMAND, "run", "-n", "2", str(ACT), "flood", str(lines), str(descriptor)]
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, env=environment())  # fmt: skip


def test_a_rank_that_floods_does_not_hold_up_another():
    flood_bytes = 60_000_000
    with flooding(flood_bytes // 10_000) as process:
        time.sleep(1.0)  # meanwhile nobody reads, and the pipes become full
        start, seen, drop_after = time.monotonic(), 0, None
        while data := process.stdout.read1(2**20):
            seen += len(data)
            if b"a drop" in data:
                drop_after = seen
    assert process.returncode == 0
    assert seen == flood_bytes + 4 * flood_bytes // 10_000 + len("[0] a drop\n")
    assert drop_after < 16 * 2**20
    assert time.monotonic() - start < 30


@pytest.mark.slow
def test_nothing_is_lost_when_the_reader_is_slow_and_the_ranks_have_gone():
    with flooding(120) as process:
        time.sleep(2.5)
        assert len(process.stdout.read()) == 120 * 10_004 + len("[0] a drop\n")
    assert process.returncode == 0


@pytest.mark.parametrize("descriptor", [1, 2])
def test_a_signal_that_cuts_the_output_of_ended_ranks_is_no_success(descriptor):
    with flooding(30, descriptor) as process:
        launcher = psutil.Process(process.pid)
        assert wait_until(launcher.children)
        # the ranks have ended, and 64 KiB of their output are in the pipe
        assert wait_until(lambda: not launcher.children())
        process.terminate()
        try:
            assert process.wait(30) == 128 + signal.SIGTERM
        finally:
            process.kill()
        if descriptor == 1:
            said = b"cobre-comm: stdout is incomplete: ended by signal 15 (SIGTERM)\n"
            assert process.stderr.read() == said


def test_a_relay_that_is_closed_has_taken_what_ended_ranks_have_written():
    (reader, ours), (theirs, rank) = os.pipe(), os.pipe()
    outlet, screen = Outlet(ours), Screen()
    relay = Relay([outlet], LauncherLoop())
    relay.add(theirs, Stream(outlet, b"", screen))
    outlet.put(b"x" * FULL_BYTES)
    relay.step(0.0)  # after this nobody reads from the pipe
    os.write(rank, b"the end\n")
    os.close(rank)
    relay.close()
    assert not relay.is_reading
    os.set_blocking(reader, False)
    seen = b""
    while not relay.is_done:
        relay.step(0.0)
        seen += os.read(reader, 2**20)
    assert seen.endswith(b"the end\n")
    os.close(reader)
    os.close(ours)


@pytest.mark.parametrize("closed", ["<&-", ">&-", "<&- >&- 2>&-"])
def test_closed_descriptors_of_a_shell(closed):
    words = "sh", *COMMAND, "run", "-n", "2", str(ACT), "pieces"
    done = run("sh", "-c", f'"$@" {closed}', *words, env=environment())
    assert done.stderr == ""
    assert done.stdout.count("slowly") == (0 if ">&-" in closed else 2)


def test_ranks_learn_that_nobody_reads_any_more():
    with flooding(100_000) as process:
        process.stdout.read(1000)
        process.stdout.close()
        assert b"BrokenPipeError" in process.stderr.read()
        assert process.wait(30) == 1


def test_carriage_returns_make_lines_of_their_own():
    outlet, (first, second) = streams(is_terminal=False)
    first.feed(b"\r 10%\r 20%")
    second.feed(b"hello\r\nworld")
    first.feed(b"\r 30%\n")
    second.finish()
    assert outlet.text == b"\r[0]  10%\r[1] hello\r\n[0]  20%\r[0]  30%\n[1] world\n"


def test_a_terminal_shows_a_prompt_and_keeps_lines_apart():
    outlet, (first, second) = streams(is_terminal=True)
    first.feed(b"name? ")
    assert first.show_partial_at < NEVER
    first.show_partial()
    assert outlet.text == b"[0] name? "
    second.feed(b"hello\n")
    first.feed(b"ok\nnext\n")
    assert outlet.text == b"[0] name? \n[1] hello\n[0] ok\n[0] next\n"
    first.feed(b"more? ")
    first.show_partial()
    first.feed(b"yes\n")
    assert outlet.text.endswith(b"[0] more? yes\n")


def test_a_line_erases_a_progress_bar_of_another_rank():
    outlet, (first, second) = streams(is_terminal=True)
    first.feed(b"50%\r60%")
    second.feed(b"hello\n")
    assert outlet.text == b"[0] 50%\r\x1b[2K[1] hello\n"


def test_a_line_without_end_is_cut():
    outlet, (first, _) = streams(is_terminal=False)
    for _ in range(6):
        first.feed(b"z" * 2**20)
    assert outlet.text.startswith(b"[0] zzz")
    assert outlet.text.endswith(b"z\n")


def test_colour_only_on_a_terminal():
    terminal, file = FakeOutlet(True), FakeOutlet(False)
    assert rank_prefix(1, terminal, colour=True) == b"\x1b[33m[1] \x1b[0m"
    assert rank_prefix(1, terminal, colour=False) == rank_prefix(1, file, colour=True) == b"[1] "


def test_outlet_keeps_what_a_descriptor_that_does_not_block_refuses():
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    outlet, sent = Outlet(writer), b"x" * 2**20
    outlet.put(sent)
    for _ in range(20):  # the last four of these writes find the pipe full
        outlet.write_some()
    with ThreadPoolExecutor() as pool, os.fdopen(reader, "rb") as file:
        read = pool.submit(file.read, len(sent))
        outlet.write_all(10)
        assert read.result() == sent
    os.close(writer)


def test_outlet_writes_without_blocking():
    reader, writer = os.pipe()
    outlet = Outlet(writer)
    outlet.put(b"x" * 3 * 2**20)
    assert outlet.is_full
    for _ in range(16):  # 64 KiB in all, which is what a pipe holds
        outlet.write_some()
    assert len(os.read(reader, 2**20)) == 2**16
    os.close(reader)
    outlet.write_some()
    assert outlet.is_broken
    assert outlet.is_empty
    os.close(writer)
