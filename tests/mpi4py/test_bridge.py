"""Which calls the bridge has or lacks, and which programs import the bridge in place of mpi4py."""

import contextlib
import copy
import pathlib
import pickle
import sys
import tracemalloc

import numpy as np
import pytest

import cobre_comm.mpi4py
from cobre_comm import CollectiveFailed, InvalidCommunicator, InvalidRoot
from cobre_comm.mpi4py import MPI
from cobre_comm.mpi4py.specifications import blocks, elements
from cobre_comm.testing.cases.collectives.float_modes import mode_of
from cobre_comm.testing.cases.raised import raises
from tests.command import python
from tests.forked import on_forks
from tests.launch.command import cobre, environment, lines_of

PROGRAMS = pathlib.Path(__file__).parent / "programs"
LOOKS, FAILS = PROGRAMS / "looks.py", PROGRAMS / "fails.py"
PAGE = "cobre_comm.mpi4py has what docs/howto/mpi4py-programs.md lists"
KEEP = f"has no counterpart here: keep mpi4py for it; {PAGE}"
OTHERS = [
    (cobre_comm.mpi4py, "get_config", "get_config of mpi4py has no counterpart here: keep mpi4py"),
    (MPI, "Request", "MPI.Request of mpi4py has no counterpart here: keep mpi4py for it"),
    (MPI.COMM_SELF, "isend", "Intracomm.isend of mpi4py has no counterpart here: for messages"),
    (MPI.COMM_SELF, "Ibarrier", "Intracomm.Ibarrier of mpi4py has no counterpart here: a collec"),
    (MPI.COMM_SELF, "Create_cart", "Intracomm.Create_cart of mpi4py has no counterpart here"),
    (MPI.DOUBLE, "Create_vector", "Datatype.Create_vector of mpi4py has no counterpart here"),
    (MPI.Win, "Create", "Win.Create of mpi4py has no counterpart here: keep mpi4py for it"),
    (MPI.SUM, "Reduce_local", "Op.Reduce_local of mpi4py has no counterpart here"),
]


@pytest.mark.parametrize(("owner", "name", "sentence"), OTHERS)
def test_a_name_that_is_missing_says_so(owner, name, sentence):
    assert not hasattr(owner, name)
    with pytest.raises(NotImplementedError) as caught:
        getattr(owner, name)
    assert str(caught.value).startswith(sentence)
    assert str(caught.value).endswith(PAGE)


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("from cobre_comm.mpi4py.MPI import SUM, Request", "MPI.Request"),
        ("from cobre_comm.mpi4py import MPI, get_include", "get_include"),
        ("from cobre_comm.mpi4py import futures", "futures"),
        ("from cobre_comm.mpi4py.util import pkl5", "util"),
        ("import cobre_comm.mpi4py.run", "run"),
    ],
)
def test_an_import_of_what_is_missing_is_said_once(statement, name, capfd):
    for _ in range(2):
        with pytest.raises(ImportError, match=r"docs/howto/mpi4py-programs\.md|'Request'"):
            exec(statement)
    assert capfd.readouterr().err == f"cobre-comm: {name} of mpi4py {KEEP}\n"


def test_options_of_mpi4py_are_read_and_set():
    rc = cobre_comm.mpi4py.Rc()
    rc(initialize=False, thread_level="single")
    rc.recv_mprobe = False
    assert (rc.initialize, rc.thread_level, rc.recv_mprobe, rc.threads) == (
        False, "single", False, True,
    )  # fmt: skip
    for odd in (lambda: rc(nothing=1), lambda: setattr(rc, "nothing", 1)):
        with pytest.raises(TypeError, match="no option 'nothing'"):
            odd()


def test_a_type_is_found_by_its_letter():
    assert MPI._typedict["d"] is MPI._typedict["f8"] is MPI.DOUBLE
    assert (MPI._typedict["l"], MPI._typedict["i8"]) == (MPI.LONG, MPI.INT64_T)


def test_communicators_that_are_predefined_are_pickled_by_name():
    for comm in (MPI.COMM_SELF, MPI.COMM_NULL):
        assert pickle.loads(pickle.dumps(comm)) is copy.deepcopy(comm) is comm
    for call in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(NotImplementedError, match=f"pickled or copied, except .*{PAGE}"):
            call(MPI.COMM_SELF.Dup())


@on_forks(2, "shm")
def test_objects_become_bytes_by_functions_of_the_program(comm):
    world, own = MPI.Intracomm(comm), []

    def dumps(obj, *protocol):
        own.append(protocol)
        return str(obj).encode()

    MPI.pickle.__init__(dumps, lambda data: [data.decode()])
    got = [world.bcast(1), world.gather(2), world.allgather(3)]
    assert got == [["1"], [["2"]] * 2 if comm.rank == 0 else None, [["3"]] * 2]
    MPI.pickle.PROTOCOL = 5
    assert world.allreduce(6) == ["6", "6"]
    assert {*own} == {(), (5,)}
    MPI.pickle.__init__()
    assert world.bcast(1) == 1


def test_places_of_arrays_and_other_parts_of_split_type_are_refused():
    pair = np.zeros(2)
    with pytest.raises(NotImplementedError, match=r"is comm\.allreduce\(\(value, place\), op\)"):
        MPI.COMM_SELF.Allreduce(pair, pair.copy(), op=MPI.MAXLOC)
    with pytest.raises(NotImplementedError, match="takes COMM_TYPE_SHARED alone here"):
        MPI.COMM_SELF.Split_type(9)


def test_a_communicator_that_was_freed_says_so():
    comm = MPI.COMM_SELF.Dup()
    comm.Free()
    for nothing in (comm, MPI.COMM_NULL):
        with pytest.raises(InvalidCommunicator, match="COMM_NULL, or a communicator that was fr"):
            nothing.Barrier()


@pytest.mark.parametrize("spec", [[np.zeros(2), 3, MPI.DOUBLE], [np.zeros(2), (1, 2), "d"]])
def test_elements_outside_a_buffer_are_refused(spec):
    with pytest.raises(ValueError, match="are not inside a buffer of 2"):
        elements(spec)


@pytest.mark.parametrize("spec", [np.zeros((4, 4))[:, :2], [np.zeros((4, 4))[:, :2], "d"]])
def test_elements_that_do_not_lie_together_are_refused(spec):
    with pytest.raises(ValueError, match="one after another"):
        MPI.COMM_SELF.Bcast(spec)


def test_nothing_that_has_no_buffer_is_taken():
    for nothing in (object(), [object(), MPI.DOUBLE], 3):
        with pytest.raises(TypeError, match=r"buffer protocol, got .*; pass an array"):
            MPI.COMM_SELF.Bcast(nothing)


@pytest.mark.parametrize("spec", [[[1, 2]], [[3], [1]], [[2], [-1]], [5, 0], [[4]]])
def test_blocks_outside_a_buffer_are_refused(spec):
    with pytest.raises(ValueError, match="are not those of 1 blocks"):
        MPI.COMM_SELF.Allgatherv(np.zeros(1), [np.zeros(3), *spec, MPI.DOUBLE])


XOR, SELF = MPI.LXOR, MPI.COMM_SELF  # the bridge folds LXOR by itself


@pytest.mark.parametrize(
    ("call", "send", "recv"),
    [
        (SELF.Scatter, np.ones(1), np.zeros(0)),
        (SELF.Scatter, np.ones(3), np.zeros(2)),
        (SELF.Scatter, np.ones(2), np.zeros(2, "f")),
        (SELF.Alltoall, np.ones(1), np.zeros(3)),
        (SELF.Scan, np.ones(1), np.zeros(3)),
        (SELF.Reduce_scatter, np.ones(3), np.zeros(2)),
        (lambda send, recv: SELF.Allreduce(send, recv, op=XOR), np.ones(1), np.zeros(3)),
        (lambda send, recv: SELF.Allreduce(send, recv, op=XOR), np.ones(3), np.zeros(3, "f")),
    ],
)
def test_values_that_do_not_fill_a_buffer_are_refused(call, send, recv):
    """NumPy would repeat a single value, or convert values to another type."""
    before = recv.copy()
    with pytest.raises(ValueError, match=r"do not fill|are not those of 1 blocks"):
        call(send, recv)
    assert np.array_equal(recv, before)


def test_arrays_of_other_classes_are_refused_where_a_mask_or_a_stride_would_be_lost():
    masked = np.ma.masked_array(np.zeros(2), [True, False])
    for recv, error in ((masked, TypeError), (np.zeros((2, 4))[:, ::2], ValueError)):
        for call in (SELF.Scatter, SELF.Scan, SELF.Allreduce, SELF.Bcast):
            with pytest.raises(error, match=r"mask would be lost|one after another"):
                call(*([recv] if call == SELF.Bcast else [np.ones(recv.size), recv]))
    matrix = np.zeros((1, 2)).view(np.matrix)
    SELF.Scan(np.ones(2), matrix)
    assert matrix.tolist() == [[1, 1]]


def test_blocks_without_counts_are_as_equal_as_can_be():
    array, counts, displs = blocks([np.zeros(5), "d"], 3)
    assert (array.size, counts, displs) == (5, [2, 2, 1], [0, 2, 4])
    assert blocks([np.zeros(6), 2, "d"], 3)[1:] == ([2, 2, 2], [0, 2, 4])
    assert blocks([np.zeros(9), 2, 3, "d"], 3)[1:] == ([2, 2, 2], [0, 3, 6])


@pytest.mark.parametrize("one", [True, np.True_, np.int8(1), np.array(1), 1.0, np.float32(1.5)])
def test_a_number_is_taken_as_mpi4py_takes_it_for_an_int_of_c(one):
    part = SELF.Split(one, key=one).Split_type(MPI.COMM_TYPE_SHARED, one)
    zero = type(one)(0) if np.ndim(one) == 0 and not isinstance(one, np.ndarray) else one - one
    recv = np.zeros(1)
    for call in (part.Gather, part.Scatter, part.Reduce):
        call(np.ones(1), recv, root=zero)
    assert [recv[0], part.bcast(2, root=zero), part.scatter([3], root=zero)] == [1, 2, 3]
    assert [part.gather(4, root=zero), part.reduce(5, root=zero)] == [[4], 5]
    part.Bcast(recv, root=zero)
    window = MPI.Win.Allocate(one, one, comm=part)
    window.Lock(zero)
    window.Get(np.zeros(1, "B"), zero)
    window.Unlock(zero)
    assert window.Shared_query(zero)[1] == 1


@pytest.mark.parametrize("color", ["1", b"1", np.zeros(1), None])
def test_what_is_no_number_is_no_color(color):
    with pytest.raises(TypeError):
        SELF.Split(color)


@pytest.mark.parametrize("root", [5, MPI.PROC_NULL, MPI.ROOT])
@pytest.mark.parametrize("name", ["Reduce", "Gather", "Scatter", "reduce", "gather", "scatter"])
def test_a_root_that_is_no_rank_is_refused(name, root):
    buffers = [np.ones(1), np.zeros(1)] if name[0].isupper() else [[1]]
    with pytest.raises(InvalidRoot, match=f"root {root} is not a rank"):
        getattr(SELF, name)(*buffers, root=root)


@on_forks(2, "shm", "tcp")
def test_ranks_that_reduce_to_different_roots_are_told_both(comm):
    call, recv = MPI.Intracomm(comm).Reduce, np.zeros(1)
    error = raises(CollectiveFailed, lambda: call(np.ones(1), recv, root=comm.rank))
    assert "root=0" in str(error)
    assert "root=1" in str(error)
    assert recv[0] == 0


def own_sum(x, y, datatype):
    if datatype is None:
        return x + y
    into = np.frombuffer(y)
    into += np.frombuffer(x)
    return None


OWN = MPI.Op.Create(own_sum)


@on_forks(2, "shm")
def test_a_function_of_the_program_is_told_the_type_of_the_elements(comm):
    told, world = [], MPI.Intracomm(comm)
    op = MPI.Op.Create(lambda x, y, kind: told.append((kind, len(x))))
    for kind in (MPI.DOUBLE, MPI.INT64_T, MPI.BYTE):
        send, recv = ([np.ones(2, kind.dtype), kind] for _ in range(2))
        world.Allreduce(send, recv, op)
        world.Reduce(send, recv, op)
        world.Scan(send, recv, op)
        world.Reduce_scatter_block(send, [recv[0][:1], kind], op)
        assert {*told} == {(kind, 2 * kind.size)}
        told.clear()
    for spec, kind in ((ONES, MPI.DOUBLE), (WORDS, MPI.LONG), ([WORDS, "i8"], MPI.INT64_T)):
        world.Allreduce(spec, spec, op)
        assert told.pop()[0] is kind


ONES, WORDS, RECV, ROOM = np.ones(4), np.ones(4, dtype=np.int64), np.zeros(4), np.zeros(8)
# What rank 0 calls, and what rank 1 calls at the same time.
DIFFERENT = {
    "MAX and SUM of objects": [lambda w: w.allreduce(1, MPI.MAX), lambda w: w.allreduce(1)],
    "LXOR and BXOR": [
        lambda w: w.Allreduce(WORDS, WORDS.copy(), MPI.LXOR),
        lambda w: w.Allreduce(WORDS, WORDS.copy(), MPI.BXOR),
    ],
    "SUM and LXOR": [
        lambda w: w.Allreduce(WORDS, WORDS.copy()),
        lambda w: w.Allreduce(WORDS, WORDS.copy(), MPI.LXOR),
    ],
    "an own operation and SUM": [
        lambda w: w.Allreduce(ONES, RECV, OWN), lambda w: w.Allreduce(ONES, RECV),
    ],
    "an own operation and REPLACE": [
        lambda w: w.Allreduce(ONES, RECV, OWN), lambda w: w.Allreduce(ONES, RECV, MPI.REPLACE),
    ],
    "types of an own operation": [
        lambda w: w.Allreduce(ONES, RECV, OWN),
        lambda w: w.Allreduce(WORDS, WORDS.copy(), OWN),
    ],
    "Scan and Exscan": [lambda w: w.Scan(ONES, RECV), lambda w: w.Exscan(ONES, RECV)],
    "Scan of SUM and of MAX": [
        lambda w: w.Scan(ONES, RECV), lambda w: w.Scan(ONES, RECV, MPI.MAX),
    ],
    "scan and exscan": [lambda w: w.scan(1), lambda w: w.exscan(1)],
    "allgather and allreduce": [lambda w: w.allgather(1), lambda w: w.allreduce(1)],
    "gather and reduce": [lambda w: w.gather(1), lambda w: w.reduce(1)],
    "bcast and scatter": [lambda w: w.bcast([1, 2]), lambda w: w.scatter([1, 2])],
    "alltoall and allgather": [lambda w: w.alltoall([1, 2]), lambda w: w.allgather([1, 2])],
    "Alltoall and alltoall": [lambda w: w.Alltoall(ONES, RECV), lambda w: w.alltoall([1, 2])],
    "Bcast and bcast": [lambda w: w.Bcast(RECV), lambda w: w.bcast(1)],
    "Bcast and Scatter": [lambda w: w.Bcast(RECV), lambda w: w.Scatter(None, RECV)],
    "Allgather and allgather": [lambda w: w.Allgather(ONES, ROOM), lambda w: w.allgather(ONES)],
    "Reduce and Allreduce": [lambda w: w.Reduce(ONES, RECV), lambda w: w.Allreduce(ONES, RECV)],
    "Reduce of SUM and of MAX": [
        lambda w: w.Reduce(ONES, RECV), lambda w: w.Reduce(ONES, RECV, MPI.MAX),
    ],
    "Reduce_scatter and Allreduce": [
        lambda w: w.Reduce_scatter_block(ONES, RECV[:2]), lambda w: w.Allreduce(ONES, RECV),
    ],
    "Allreduce of nothing and Barrier": [
        lambda w: w.Allreduce(ONES[:0], RECV[:0]), lambda w: w.Barrier(),
    ],
    "Dup and Split": [lambda w: w.Dup(), lambda w: w.Split(0)],
    "windows": [
        lambda w: MPI.Win.Allocate(8, comm=w), lambda w: MPI.Win.Allocate_shared(8, comm=w),
    ],
}  # fmt: skip


@on_forks(2, "shm", "tcp", env={"COBRE_TCP_TOKEN": "secret"})
def test_ranks_that_make_different_calls_are_told_so(comm):
    for name, calls in DIFFERENT.items():
        error = raises(CollectiveFailed, calls[comm.rank], MPI.Intracomm(comm).Dup())
        assert "ranks disagree" in str(error), name


@on_forks(2, "shm", "tcp")
def test_what_ranks_call_is_told_in_the_words_of_mpi4py(comm):
    call, op = MPI.Intracomm(comm).Scan, (MPI.SUM, MPI.MAX)[comm.rank]
    error = raises(CollectiveFailed, call, ONES, RECV, op)
    assert str(error).count("of mpi4py.Scan(SUM)") == 1
    assert str(error).count("of mpi4py.Scan(MAX)") == 1


@on_forks(2, "shm")
def test_what_the_bridge_folds_has_the_usual_floating_point_mode(comm):
    tiny, world, found = (5e-324, 1e-323)[comm.rank], MPI.Intracomm(comm), np.empty(3)
    with mode_of("flush") if comm.rank else contextlib.nullcontext():
        world.Allreduce(np.array([0.0, tiny, (0.0, 1e-323)[comm.rank]]), found, MPI.LXOR)
        largest = world.allreduce(tiny, MPI.MAX)
    assert found.tolist() == [0.0, 0.0, 1.0]
    assert largest == 1e-323


@on_forks(4, "shm")
def test_large_blocks_need_little_memory(comm):
    world, own = MPI.Intracomm(comm), MPI.Op.Create(decimal)
    send, recv = np.full(2**20, 1.0 + comm.rank), np.zeros(2**20)  # each rank sends 8 MiB
    tracemalloc.start()
    for call, most_mib, expected in (
        (lambda: world.Allreduce(send, recv, own), 13, 1234),
        (lambda: world.Scan(send, recv, own), 13, 1234 // 10 ** (3 - comm.rank)),
        (lambda: world.Alltoall(send, recv), 1, np.repeat([1.0, 2.0, 3.0, 4.0], 2**18)),
        (lambda: world.allreduce(send, own), 28, 1234),
    ):
        got = None
        tracemalloc.reset_peak()
        before, _ = tracemalloc.get_traced_memory()
        got = call()
        assert tracemalloc.get_traced_memory()[1] - before < most_mib * 2**20
        assert np.all((recv if got is None else got) == expected)
        assert np.all(send == 1 + comm.rank)


def decimal(x, y, datatype):
    """Append the digit ``y`` to ``x``: the result shows the order and grouping of the ranks."""
    if datatype is None:
        return 10 * x + y
    into = np.frombuffer(y)
    into += 10 * np.frombuffer(x)
    return None


@on_forks(2, "shm")
def test_ranks_that_fold_different_numbers_of_pieces_are_told_so(comm):
    world, piece = MPI.Intracomm(comm), MPI.PIECE_BYTES // 8
    for counts in ((piece, 2 * piece), (2 * piece, 3 * piece), (2, 2 * piece)):
        send = np.ones(counts[comm.rank])
        part = world.Dup()
        error = raises((CollectiveFailed, ValueError), part.Allreduce, send, send.copy(), OWN)
        assert "ranks disagree" in str(error) or f"elements: {[*counts]}" in str(error)


@on_forks(2, "shm")
def test_blocks_of_alltoall_may_be_empty_and_in_place(comm):
    world, rank = MPI.Intracomm(comm), comm.rank
    recv = np.array([10.0, 11.0]) + 10 * rank
    world.Alltoall(MPI.IN_PLACE, recv)
    assert recv.tolist() == [10 + rank, 20 + rank]
    send, recv = np.full(3, rank + 1.0), np.zeros(6)
    world.Alltoallv([send, [0, 3]], [recv, [0, 0] if rank == 0 else [3, 3]])
    assert recv.tolist() == ([0] * 6 if rank == 0 else [1, 1, 1, 2, 2, 2])


@pytest.mark.parametrize(
    "program", [[LOOKS], ["-m", "mpi4py", LOOKS], ["-m", "mpi4py", "-m", "looks"]]
)
def test_a_program_that_cannot_be_changed_finds_the_bridge(program):
    done = cobre("run", "-n", 2, "--as-mpi4py", *program, PYTHONPATH=str(PROGRAMS))
    names = ["MPI.ANY_SOURCE", "futures", "windows"]
    said = [f"cobre-comm: {name} of mpi4py {KEEP}" for name in names]
    assert (done.returncode, lines_of(done.stderr, 0)) == (0, said)
    for rank in range(2):
        assert lines_of(done.stdout, rank) == [
            f"main rank {rank} of 2, mpi4py is cobre_comm.mpi4py, MPI is cobre_comm.mpi4py.MPI",
            "a child is rank 0 of 1, mpi4py is cobre_comm.mpi4py, MPI is cobre_comm.mpi4py.MPI",
        ]


def test_mpi4py_itself_is_not_hidden_from_programs_that_have_not_asked():
    pytest.importorskip("mpi4py")
    done = cobre("run", "-n", 2, "-m", "mpi4py", "--version")
    assert "mpi4py 4" in done.stdout, done.stderr
    code = "import sys; from cobre_comm.mpi4py import MPI; MPI.COMM_WORLD; print(*sys.modules)"
    assert "mpi4py" not in python("-c", code, env=environment()).stdout.split()


def test_where_the_bridge_stands_in_for_mpi4py_there_is_no_mpi():
    code = (
        "import cobre_comm\nimport mpi4py\nfrom mpi4py import MPI\n"
        "print(*cobre_comm.available_backends(), flush=True)\n"
        "cobre_comm.create_communicator('mpi')"
    )
    done = cobre("run", "-n", 1, "--as-mpi4py", sys.executable, "-c", code)
    assert done.stdout.split() == ["local", "shm", "tcp"]
    assert "cannot be loaded (cobre_comm.mpi4py stands in for it: --as-mpi4py)" in done.stderr


def test_over_mpi_the_option_is_refused():
    done = cobre("run", "-n", 2, "--as-mpi4py", "--backend", "mpi", LOOKS)
    assert done.returncode == 2
    assert "--as-mpi4py is for programs without an MPI: over mpi, leave it out" in done.stderr


@on_forks(2, "tcp", env={"COBRE_TCP_TOKEN": ""})
def test_objects_over_sockets_need_a_token(comm):
    world = MPI.Intracomm(comm)
    for call in (world.bcast, world.gather, world.allreduce, world.scan):
        assert "set COBRE_TCP_TOKEN" in str(raises(PermissionError, call, {}))
    world.Barrier()


@pytest.mark.parametrize(
    ("how", "code", "sentences"),
    [
        ("killed", 137, ["allreduce failed: rank 1", "rank 1 was ended by signal 9"]),
        ("raises", 1, ["ValueError: of rank 1", "rank 1 exited with code 1"]),
        ("another", 1, ["allreduce failed: ", "rank 1", "broadcast"]),
        ("shorter", 1, ["allreduce failed: ", "rank 1"]),
        ("aborts", 7, ["rank 1 called abort(7)"]),
        ("late", 1, ["allreduce failed: ", "rank 1", "2 s"]),
        ("list", 1, ["ValueError: scatter: expecting 2 items, got 1"]),
    ],
)
def test_who_fails_or_disagrees_is_named(how, code, sentences):
    done = cobre("run", "-n", 2, "--as-mpi4py", "--timeout", 2, FAILS, how)
    assert done.returncode == code, done.stderr
    for sentence in sentences:
        assert sentence in done.stderr + done.stdout
