"""A user's compiled function: how it is cached, how little code cheap calls need, its errors."""

import functools
import importlib
import pathlib
import re
import shutil
import sys

import cobre_kernels
import numpy as np
import pytest
from cobre_kernels.machine import version
from cobre_kernels.machine.compiling import record_types
from numba import TypingError, guvectorize, njit, prange, types, vectorize

from cobre_comm import CollectiveFailed, InvalidCommunicator, InvalidRoot, LocalBackend
from cobre_comm.jit import attributes
from cobre_comm.jit import types as jit_types
from cobre_comm.testing import run_ranks
from cobre_comm.testing.cases.raised import raises
from tests.command import python
from tests.imports import files, reached
from tests.jit import holders, parallel_loops

NUMBER, ROW = types.float64, types.float64[:]
USER_SOURCE = pathlib.Path(__file__).with_name("cached_user_module.txt")


def call_user_function(comm, folder):
    """Return cache hits, cache misses and value of the first call in the process of a rank."""
    sys.path.insert(0, folder)
    user = importlib.import_module("cached_user_module")
    assert pathlib.Path(user.__file__).parent == pathlib.Path(folder)
    send, recv = np.arange(3.0) + comm.rank, np.zeros(3)
    value = user.user_loop(comm, send, recv)
    expected = sum(np.arange(3.0) + rank for rank in range(comm.size))
    assert recv.tolist() == expected.tolist()
    stats = user.user_loop.stats
    return sum(stats.cache_hits.values()), sum(stats.cache_misses.values()), value


def test_another_process_rank_and_size_reuse_the_cached_function(tmp_path):
    shutil.copy(USER_SOURCE, tmp_path / "cached_user_module.py")
    folder = str(tmp_path)
    assert run_ranks("shm", 1, call_user_function, folder) == [(0, 1, 10)]
    again = run_ranks("shm", 2, call_user_function, folder, env={"COBRE_SHM_BUFFER_BYTES": "8192"})
    assert again == [(1, 0, 20), (1, 0, 21)]
    assert run_ranks("local", 1, call_user_function, folder) == [(0, 1, 10)]
    assert run_ranks("local", 1, call_user_function, folder) == [(1, 0, 10)]


@pytest.mark.parametrize("cls", [jit_types.LocalCommType, jit_types.CommType])
def test_another_version_is_another_signature(monkeypatch, cls):
    now, again = cls(), cls()
    assert now == again
    assert hash(now) == hash(again)
    monkeypatch.setattr(jit_types, "version_tag", lambda: "another version")
    other = cls()
    assert other != now
    assert other.name != now.name
    assert other.mangling_args != now.mangling_args or str(other) != str(now)


def test_one_rank_and_several_are_different_types():
    assert jit_types.LocalCommType() != jit_types.CommType()


def test_another_version_of_the_kernels_is_another_signature(monkeypatch):
    now, again = record_types.RecordType("Comm"), record_types.RecordType("Comm")
    assert now == again
    monkeypatch.setattr(record_types, "source_hash", lambda: "another version")
    assert record_types.RecordType("Comm") != now


IMPORTED = """
import sys
from cobre_comm.jit import register
print(*(m.__file__ for n, m in sys.modules.items() if n.startswith("cobre_")))
"""


def test_a_change_of_any_source_that_reaches_a_user_s_code_is_another_version(monkeypatch):
    """The version covers modules that compiled methods import, and kernels of every backend."""
    sources = {pathlib.Path(name) for name in python("-c", IMPORTED).stdout.split()}
    # The sources include modules that are imported only within functions of these modules.
    sources |= {files()[name] for name in reached("cobre_comm.jit")}
    kernels = set(pathlib.Path(cobre_kernels.__file__).parent.rglob("*.py"))
    assert {"checks.py", "slow_path.py", "reduce_op.py"} <= {path.name for path in sources}
    read, kernels_now = functools.cache(pathlib.Path.read_bytes), version.source_hash()
    tags = {None: jit_types.version_tag()}
    for changed in sources | kernels:
        monkeypatch.setattr(
            pathlib.Path, "read_bytes", lambda p, c=changed: read(p) + b"#" * (p == c)
        )
        tags[changed] = jit_types.version_tag.__wrapped__()
        now = version.hash_of(version.kernel_sources())
        assert (now != kernels_now) == (changed in kernels)
    assert len(set(tags.values())) == len(tags)


@njit
def no_ops(comm, buffer):
    comm.barrier()
    comm.broadcast(buffer, 0)
    comm.broadcast(buffer)
    comm.barrier()
    return comm.rank + comm.size


def body_of(function):
    """Return the optimised LLVM code of a function itself, without its wrappers."""
    [text] = function.inspect_llvm().values()
    [name] = {overload.fndesc.mangled_name for overload in function.overloads.values()}
    found = re.search(
        rf"^define [^\n]*@\"?{re.escape(name)}\"?\(.*?^}}", text, flags=re.DOTALL | re.MULTILINE
    )
    assert found is not None
    return found.group(0)


def test_barrier_and_broadcast_over_local_look_at_the_guard_alone():
    with LocalBackend() as comm:
        assert no_ops(comm, np.zeros(3)) == 1
    with pytest.raises(InvalidCommunicator, match="closed"):
        no_ops(comm, np.zeros(3))
    body = body_of(no_ops)
    assert body.count("load atomic") == 4
    assert not re.search(r"\b(cmpxchg|atomicrmw|store atomic|fence)\b", body), body


@njit
def rank_and_size(comm):
    return comm.rank * 100 + comm.size


def test_rank_and_size_over_local_are_constants():
    with LocalBackend() as comm:
        assert rank_and_size(comm) == 1
    # These lines only count the references of the function itself.
    counted = re.compile(r"asm sideeffect \"\"|@NRT_(in|de)cref")
    body = "\n".join(
        line for line in body_of(rank_and_size).splitlines() if not counted.search(line)
    )
    assert not re.search(r"\b(call|invoke|load)\b", body), body


@njit(parallel=True)
def enter_in_a_parallel_loop(comm, number):
    for _ in prange(4):
        comm.enter_phase(number)


@njit
def name_a_phase(comm):
    return comm.phase_number("a")


@njit
def begin_a_phase(comm):
    return comm.phase("a")


@njit
def broadcast_of_five_dimensions(comm, array):
    comm.broadcast(array)
    comm.broadcast(array, root=0)


def test_an_implementation_is_made_once_whatever_a_call_leaves_out(monkeypatch):
    made = []
    name_of = attributes.own_named
    monkeypatch.setattr(attributes, "own_named", lambda one: made.append(one) or name_of(one))
    with LocalBackend() as comm:
        broadcast_of_five_dimensions(comm, np.ones((1,) * 5, np.int16))
    names = [one.__qualname__.partition(".")[0] for one in made]
    # One implementation is for calls without a root, and one for calls with a root.
    assert names.count("_broadcast") == 2, names


def test_phases_in_compiled_code_are_of_one_thread_and_go_by_numbers():
    with LocalBackend() as comm:
        number = comm.phase_number("a")
        told = str(raises(TypingError, enter_in_a_parallel_loop, comm, number))
        assert "enter_phase cannot be called inside prange" in told
        for function, name in ((name_a_phase, "phase_number"), (begin_a_phase, "phase")):
            told = str(raises(TypingError, function, comm))
            assert f"comm.{name} works in Python alone: pass the number of the phase" in told


@pytest.mark.slow
def test_every_form_works_or_is_refused_in_one_sentence():
    for wrong, told in run_ranks("shm", 2, holders.every_form, timeout_s=120):
        assert wrong == []
        for sentence, text in zip(holders.REFUSALS, told, strict=True):
            assert sentence in text


@pytest.mark.ranks(2, timeout=120)
def test_a_failed_collective_of_several_elements_raises_its_own_error(comm):
    """Loops of ``@vectorize`` and ``@guvectorize`` continue after an element has failed."""

    @vectorize([NUMBER(NUMBER)])
    def each(x):
        comm.broadcast(np.ones(2), 99)
        return x

    @guvectorize([types.void(ROW, ROW)], "(n)->(n)")
    def row(x, y):
        comm.broadcast(np.ones(2), 99)

    @vectorize([NUMBER(NUMBER)])
    def caught_later(x):
        if x == 0.0:
            comm.broadcast(np.ones(2), 99)
        try:
            comm.allreduce(np.ones(2), np.ones(3))
        except Exception:
            return x
        return x

    for count in range(1, 5):
        raises(InvalidRoot, each, np.ones(count))
        raises(InvalidRoot, row, np.ones((count, 2)))
    raises(InvalidRoot, caught_later, np.arange(2.0))


def test_a_block_outside_a_region_is_told_for_every_length():
    @njit
    def behind_the_end(region):
        return region.part(0, region.count + 1)

    with LocalBackend() as comm:
        for count in range(1, 50):  # some of these lengths equal the number of a status
            region = comm.create_shared_region(count)
            text = str(raises(ValueError, behind_the_end, region))
            assert f"is not inside a region of length {count}" in text


@pytest.mark.ranks(2, timeout=120)
def test_of_several_elements_the_first_may_break_the_communicator(comm):
    @vectorize([NUMBER(NUMBER)])
    def meet(x):
        comm.barrier()
        return x

    if comm.rank == 1:
        comm.close()
    else:
        raises(CollectiveFailed, meet, np.ones(3))


@pytest.mark.parametrize(
    ("layer", "backend"),
    [("workqueue", "shm"), pytest.param("omp", "tcp", marks=pytest.mark.slow)],
)
def test_collective_in_a_parallel_loop_is_refused_or_breaks_the_communicator(layer, backend):
    env = {"NUMBA_NUM_THREADS": "4", "NUMBA_THREADING_LAYER": layer}
    done = run_ranks(backend, 2, parallel_loops.loops, timeout_s=120, env=env)
    for refusal, error, lost in done:
        assert "allreduce cannot be called inside prange" in refusal
        assert isinstance(error, (InvalidCommunicator, CollectiveFailed))
        assert error.ranks == (0,)
        assert lost == [0] * 5
    assert "prange" in str(done[0][1])
