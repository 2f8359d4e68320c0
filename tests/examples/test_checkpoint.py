"""A training continues from its checkpoint with the same bits, and refuses other files."""

import os
import random
import signal
import subprocess
import sys
import time

import psutil
import pytest
import train
from checkpoint.header import MAGIC, VERSION
from conftest import EXAMPLE
from training.run import run_training
from training.share import UnwrittenFile, UsageError

from cobre_comm.check import sddp
from tests.losses.training import ranks_of

LARGE, SMALL = "gen_h8_t12_k10", "gen_h4_t5_k3"
ITERATIONS = "40"
LONGEST_S = 100.0


def resumed_alike(cases, comm, path, name, stop, **options):
    """Train in two parts, and compare the result with that of an uninterrupted training."""
    whole = run_training(cases / f"{name}.json", comm, **options)
    run_training(cases / f"{name}.json", comm, **{**options, "iterations": stop}, checkpoint=path)
    resumed = run_training(cases / f"{name}.json", comm, **options, checkpoint=path)
    assert resumed.resumed_after == stop
    assert resumed.cuts_sha256 == whole.cuts_sha256
    for one, other in ((resumed.lower_bound, whole.lower_bound), (resumed.stopped, whole.stopped)):
        assert one == other
    assert resumed.upper_bound_half_width == whole.upper_bound_half_width


@pytest.mark.parametrize("select", [False, True, None])
@pytest.mark.parametrize("stop", [0, 1, 7])
def test_a_training_in_two_parts_has_the_bits_of_one(cases, comm, tmp_path, stop, select):
    path = tmp_path / "half.ckpt"
    resumed_alike(cases, comm, path, LARGE, stop, iterations=8, trajectories=5, select=select)
    assert [file.name for file in tmp_path.iterdir()] == ["half.ckpt"]


def test_a_training_stops_by_the_rule_that_the_first_part_had_begun_to_count_for(
    cases, comm, tmp_path
):
    resumed_alike(cases, comm, tmp_path / "half.ckpt", SMALL, 25)


def test_a_finished_training_has_nothing_left_to_do(cases, comm, tmp_path):
    resumed_alike(cases, comm, tmp_path / "all.ckpt", LARGE, 4, iterations=4)


@pytest.mark.parametrize(
    ("name", "options", "text"),
    [
        ("fast_hydro_thermal_5", {}, "with other data than fast_hydro_thermal_5 has now"),
        (SMALL, {"seed": 4}, "of --seed 0, not 4"),
        (SMALL, {"trajectories": 3}, "of --forward-passes 16, not 3"),
        (SMALL, {"iterations": 2}, "has 3 iterations, more than"),
        (SMALL, {"select": True}, "without --select-cuts or --all-cuts, not with --select-cuts"),
        (SMALL, {"select": False}, "without --select-cuts or --all-cuts, not with --all-cuts"),
    ],
)
def test_a_checkpoint_of_something_else_is_refused_and_kept(
    cases, comm, tmp_path, name, options, text
):
    path = tmp_path / "small.ckpt"
    run_training(cases / f"{SMALL}.json", comm, iterations=3, checkpoint=path)
    before = path.read_bytes()
    with pytest.raises(UsageError, match=text):
        run_training(cases / f"{name}.json", comm, **{"iterations": 5, **options}, checkpoint=path)
    assert path.read_bytes() == before


def test_a_checkpoint_of_selected_cuts_is_refused_where_all_are_kept(cases, comm, tmp_path):
    path, case = tmp_path / "small.ckpt", cases / f"{SMALL}.json"
    run_training(case, comm, iterations=3, checkpoint=path, select=True)
    with pytest.raises(UsageError, match="with --select-cuts, not without --select-cuts or"):
        run_training(case, comm, iterations=5, checkpoint=path)


def cut(data):
    return data[: len(data) // 2]


def flipped(data):
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (cut, "is cut short"),
        (lambda data: data[:10], "is cut short"),
        (lambda data: data[: data.index(b"\n") + 9], "is cut short"),
        (lambda data: b"", "is cut short"),
        (lambda data: data[:-1], "is cut short"),
        (lambda data: data + b"\0", "is damaged"),
        (flipped, "is damaged"),
        (lambda data: data.replace(b'"hydros"', b'"rivers"', 1), "is damaged"),
        (lambda data: data.replace(b"%s %d" % (MAGIC, VERSION), MAGIC + b" 1", 1), "has version 1"),
        (lambda data: b"{}\n" + data, "is no checkpoint of this program"),
    ],
)
def test_a_file_that_is_no_whole_checkpoint_is_one_sentence(cases, tmp_path, capsys, change, text):
    path, case = tmp_path / "small.ckpt", str(cases / f"{SMALL}.json")
    words = [case, "--quiet", "--iterations", "3", "--checkpoint", str(path)]
    assert train.main(words) == 0
    changed = change(path.read_bytes())
    path.write_bytes(changed)
    assert train.main(words) == 2
    errors = capsys.readouterr().err
    assert text in errors
    assert "delete it to begin anew, or name another file" in errors
    assert errors.count("\n") == 1
    assert path.read_bytes() == changed


def test_a_full_disk_leaves_the_checkpoint_before(cases, comm, tmp_path):
    path = tmp_path / "small.ckpt"
    run_training(cases / f"{SMALL}.json", comm, iterations=3, checkpoint=path)
    before = path.read_bytes()
    (tmp_path / "small.ckpt.part").symlink_to("/dev/full")
    with pytest.raises(UnwrittenFile, match=r"cannot write the checkpoint .*small\.ckpt: No space"):
        run_training(cases / f"{SMALL}.json", comm, iterations=5, checkpoint=path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["small.ckpt"]


def start(ranks, path, every="1"):
    """Start a training that writes a checkpoint after every ``every`` iterations."""
    command = [sys.executable, "-m", "cobre_comm", "run", "-n", str(ranks), "--backend", "shm"]
    command += [str(EXAMPLE / "train.py"), str(EXAMPLE / "cases" / f"{LARGE}.json"), "--quiet"]
    command += ["--iterations", ITERATIONS, "--checkpoint", str(path), "--checkpoint-every", every]
    environ = {**os.environ, "COBRE_COMM_GRACEFUL": "SIGUSR1"}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return subprocess.Popen(command, env=environ, **quiet)


def await_checkpoint(process, path):
    """Wait until a training has written its first checkpoint."""
    deadline = time.monotonic() + LONGEST_S
    while not path.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    assert path.exists(), f"no checkpoint within {LONGEST_S:g} s"


def kill_in_the_middle(process, path, draw):
    """Kill a rank or the launcher after the first checkpoint; return which process it was."""
    await_checkpoint(process, path)
    family = ranks_of(process.pid) if process.poll() is None else []
    time.sleep(draw.uniform(0.0, 1.0))
    target = draw.choice(["launcher", "rank"])
    if target == "launcher":
        process.kill()
    elif family:
        draw.choice(family).send_signal(signal.SIGKILL)
    process.wait(LONGEST_S)
    _, alive = psutil.wait_procs(family, timeout=LONGEST_S)
    assert alive == [], "ranks outlive their launcher"
    return target


@pytest.fixture(scope="module")
def uninterrupted():
    # This training compiles, so that no later training is killed while it compiles.
    sddp.train("shm", 1, LARGE, ("--iterations", "0"))
    return sddp.train("local", 1, LARGE, ("--iterations", ITERATIONS))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(16))
def test_a_killed_training_goes_on_with_other_ranks(uninterrupted, tmp_path, seed):
    draw, path = random.Random(seed), tmp_path / "killed.ckpt"
    before, after = draw.sample([1, 2, 3, 4], 2)
    process = start(before, path)
    try:
        target = kill_in_the_middle(process, path, draw)
    finally:
        process.kill()
        process.wait()
    options = ("--iterations", ITERATIONS, "--checkpoint", str(path))
    result = sddp.train("shm", after, LARGE, options)
    print(f"{target} of {before} ranks killed, {after} went on after {result['resumed_after']}")
    assert 1 <= result["resumed_after"] <= int(ITERATIONS)
    assert sddp.differences(uninterrupted, result) == []


@pytest.mark.slow
def test_a_training_that_is_asked_to_stop_writes_a_checkpoint_and_ends_well(
    uninterrupted, tmp_path
):
    path = tmp_path / "stopped.ckpt"
    process = start(2, path, every="4")
    await_checkpoint(process, path)
    for rank in ranks_of(process.pid)[:1]:
        rank.send_signal(signal.SIGUSR1)
    assert process.wait(LONGEST_S) == 0
    options = ("--iterations", ITERATIONS, "--checkpoint", str(path))
    result = sddp.train("local", 1, LARGE, options)
    assert 4 < result["resumed_after"] < int(ITERATIONS)
    assert sddp.differences(uninterrupted, result) == []
