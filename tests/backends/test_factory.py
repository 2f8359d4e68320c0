import importlib.metadata
import logging
import os
import signal

import pytest
from cobre_kernels.collective.comm import COMM
from cobre_kernels.machine.libc import HAS_FUTEX

from cobre_comm import (
    BackendKind,
    BackendNotAvailable,
    InitializationFailed,
    InvalidBackend,
    LocalBackend,
    MissingConfiguration,
    MpiConfig,
    ShmConfig,
    TcpConfig,
    available_backends,
    create_communicator,
    factory,
)
from cobre_comm.backends.mpi import library
from cobre_comm.backends.mpi.spec import LAUNCH_VARIABLES
from cobre_comm.testing import new_job_name

SHM_VARIABLES = ("COBRE_SHM_NAME", "COBRE_SHM_RANK", "COBRE_SHM_SIZE")
TCP_VARIABLES = ("COBRE_TCP_COORDINATOR", "COBRE_TCP_RANK", "COBRE_TCP_SIZE")
ANNOUNCING = (
    *LAUNCH_VARIABLES,
    "COBRE_COMM_BACKEND",
    *SHM_VARIABLES,
    *TCP_VARIABLES,
)


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch):
    for name in ANNOUNCING:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def one_shm_rank(monkeypatch):
    for name, value in zip(SHM_VARIABLES, (new_job_name(), "0", "1"), strict=True):
        monkeypatch.setenv(name, value)


def backend_of(*arguments):
    with create_communicator(*arguments) as comm:
        assert (comm.rank, comm.size) == (0, 1)
        return comm.backend


@pytest.mark.parametrize(
    "arguments", [(), (None,), (BackendKind.AUTO,), (BackendKind.LOCAL,), ("local",)]
)
def test_local_without_any_announcement(arguments):
    assert backend_of(*arguments) == "local"


@pytest.mark.usefixtures("one_shm_rank")
@pytest.mark.parametrize("kind", [None, BackendKind.AUTO, BackendKind.SHM, "shm", " SHM "])
def test_shm(kind):
    assert backend_of(kind) == "shm"


@pytest.mark.usefixtures("one_shm_rank")
@pytest.mark.parametrize(
    ("name", "backend"), [("auto", "shm"), ("local", "local"), ("shm", "shm"), ("", "shm")]
)
def test_environment_chooses(monkeypatch, name, backend):
    monkeypatch.setenv("COBRE_COMM_BACKEND", name)
    assert backend_of() == backend


@pytest.mark.usefixtures("one_shm_rank")
def test_caller_beats_environment(monkeypatch):
    monkeypatch.setenv("COBRE_COMM_BACKEND", "shm")
    assert backend_of(BackendKind.LOCAL) == "local"


def test_config_implies_its_backend(monkeypatch):
    monkeypatch.setenv("COBRE_COMM_BACKEND", "local")
    assert backend_of(ShmConfig(name=new_job_name(), rank=0, size=1)) == "shm"


def detected(monkeypatch, environ, has_mpi=True):
    monkeypatch.setattr(library, "why_not", lambda: "" if has_mpi else "no MPI")
    return factory._detect(environ)


SHM, TCP = {"COBRE_SHM_NAME": "/x"}, {"COBRE_TCP_COORDINATOR": "host"}


@pytest.mark.parametrize("variable", LAUNCH_VARIABLES)
def test_auto_takes_mpi_first(monkeypatch, variable):
    name, reason = detected(monkeypatch, {variable: "0", **TCP, **SHM})
    assert name == "mpi"
    assert variable in reason


@pytest.mark.parametrize(
    ("environ", "name"),
    [({**SHM, **TCP}, "tcp"), (SHM, "shm"), ({}, "local"), ({"COBRE_SHM_NAME": ""}, "local")],
)
def test_auto_takes_tcp_before_shm_before_local(monkeypatch, environ, name):
    assert detected(monkeypatch, environ)[0] == name


def test_auto_without_mpi_does_not_take_it(monkeypatch):
    assert detected(monkeypatch, {"SLURM_PROCID": "3", **SHM}, has_mpi=False)[0] == "shm"


TORCH = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "here"}  # there is no port
TASK = {"SLURM_JOB_ID": "7", "SLURM_PROCID": "0", "SLURM_NTASKS": "2", "SLURM_STEP_ID": "0"}


@pytest.mark.parametrize(
    "environ",
    [
        {"PMI_SIZE": "2"},
        {"OMPI_COMM_WORLD_SIZE": "2"},
        TORCH,
        TASK | {"SLURM_STEP_NUM_TASKS": "2"},
        {"SLURM_PROCID": "1", "SLURM_NTASKS": "2"},
        {"SLURM_PROCID": "", "SLURM_NTASKS": "2"},
        {"SLURM_PROCID": "0", "SLURM_NTASKS": "2"},
    ],
)
def test_auto_does_not_turn_several_ranks_into_many_rank_zeros(monkeypatch, environ):
    with pytest.raises(InitializationFailed, match=r"rank 0 of 1, but \w+=2 announces 2") as caught:
        detected(monkeypatch, environ, has_mpi=False)
    assert "COBRE_COMM_BACKEND=local" in str(caught.value)
    assert detected(monkeypatch, environ | TCP, has_mpi=False)[0] == "tcp"
    world = type("World", (), {"Get_size": lambda self: 1})()
    with pytest.raises(InitializationFailed, match=r"world of 1 rank, but \w+=2 announces 2"):
        library.check_world(world, environ)


@pytest.mark.parametrize(
    "environ",
    [
        # This rank was started by a launcher within srun, and the nearest launcher counts.
        {"PMI_SIZE": "1", "SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "4"},
        TASK | {"SLURM_NTASKS": "1", "SLURM_STEP_NUM_TASKS": "1"},  # srun -n 1
        {"SLURM_JOB_ID": "7", "SLURM_NTASKS": "4"},  # the shell of salloc
        TASK | {"SLURM_NTASKS": "4", "SLURM_STEP_NUM_TASKS": "1"},  # the interactive step of salloc
        {"SLURM_JOB_ID": "7", "SLURM_NTASKS": "4", "SLURM_PROCID": "0"},  # the script of sbatch
        {"WORLD_SIZE": "4"},
        {"PMI_SIZE": "many"},
    ],
)
def test_auto_is_local_where_one_process_is_all_that_was_started(monkeypatch, environ):
    assert detected(monkeypatch, environ, has_mpi=False)[0] == "local"
    library.check_world(type("World", (), {"Get_size": lambda self: 1})(), environ)


def test_unknown_backend(monkeypatch):
    with pytest.raises(InvalidBackend) as caught:
        create_communicator("smh")
    assert caught.value.requested == "smh"
    assert set(caught.value.available) >= {"local", "shm"}
    monkeypatch.setenv("COBRE_COMM_BACKEND", "carrier-pigeon")
    with pytest.raises(InvalidBackend, match="carrier-pigeon"):
        create_communicator()


@pytest.mark.parametrize("kind", [3, 1.5, ["shm"], object()])
def test_wrong_kind(kind):
    with pytest.raises(TypeError):
        create_communicator(kind)


@pytest.mark.parametrize("kind", [BackendKind.MPI, "mpi"])
def test_backend_that_cannot_be_used(monkeypatch, kind):
    monkeypatch.setattr(library, "why_not", lambda: "no libmpi.so.12")
    assert "mpi" not in available_backends()
    with pytest.raises(BackendNotAvailable) as caught:
        create_communicator(kind)
    assert caught.value.requested == "mpi"
    assert "no libmpi.so.12" in str(caught.value)
    assert "local" in caught.value.available
    assert "pip install" in caught.value.suggestion


def test_available_backends():
    assert available_backends()[:1] == ["local"]
    assert "shm" in available_backends()
    assert len(set(available_backends())) == len(available_backends())


def test_missing_configuration_lists_all(monkeypatch):
    with pytest.raises(MissingConfiguration) as caught:
        create_communicator(BackendKind.SHM)
    assert caught.value.missing_vars == SHM_VARIABLES
    monkeypatch.setenv("COBRE_SHM_RANK", "0")
    with pytest.raises(MissingConfiguration) as caught:
        create_communicator("shm")
    assert caught.value.missing_vars == ("COBRE_SHM_NAME", "COBRE_SHM_SIZE")
    assert "COBRE_SHM_NAME, COBRE_SHM_SIZE" in caught.value.suggestion


@pytest.mark.usefixtures("one_shm_rank")
@pytest.mark.parametrize(
    ("variable", "values"),
    [
        ("COBRE_SHM_NAME", ("no-slash", "/two/slashes", "/", "/" + 300 * "x")),
        ("COBRE_SHM_RANK", ("one", "-1", "1")),
        ("COBRE_SHM_SIZE", ("0", "1.0", "100000000")),
        ("COBRE_SHM_TIMEOUT_SECS", ("soon", "-1", "nan", "1e300")),
        ("COBRE_SHM_BUFFER_BYTES", ("100", "1e6", "9223372036854775807")),
        ("COBRE_COMM_TIMEOUT_SECS", ("soon", "-1")),
        ("COBRE_COMM_BUFFER_BYTES", ("100",)),
        ("COBRE_SHM_NUMA_INTERLEAVE", ("yes",)),
        ("COBRE_COMM_SPIN_US", ("-3", "1e300")),
    ],
)
def test_garbage_in_the_environment(monkeypatch, variable, values):
    for value in values:
        monkeypatch.setenv(variable, value)
        with pytest.raises(InitializationFailed) as caught:
            create_communicator("shm")
        assert caught.value.backend == "shm"


@pytest.mark.usefixtures("one_shm_rank")
def test_values_are_taken(monkeypatch):
    variables = ("SHM_TIMEOUT_SECS", "SHM_BUFFER_BYTES", "SHM_NUMA_INTERLEAVE", "COMM_SPIN_US")
    for name, value in zip(variables, ("2.5", "8192", "1", "7"), strict=True):
        monkeypatch.setenv(f"COBRE_{name}", value)
    config = ShmConfig.from_env()
    taken = (config.timeout_s, config.buffer_bytes, config.numa_interleave, config.spin_us)
    assert taken == (2.5, 8192, True, 7.0)
    assert backend_of(config) == "shm"


@pytest.mark.parametrize("backend", ["SHM", "TCP", "MPI"])
def test_a_backend_s_own_limit_takes_the_place_of_that_of_all(backend):
    config = {"SHM": ShmConfig, "TCP": TcpConfig, "MPI": MpiConfig}[backend]
    seat = {"COBRE_SHM_NAME": "/a", "COBRE_SHM_RANK": "0", "COBRE_SHM_SIZE": "1"}
    seat |= {"COBRE_TCP_RANK": "0", "COBRE_TCP_SIZE": "1"}
    of_all = {"COBRE_COMM_TIMEOUT_SECS": "2.5", "COBRE_COMM_BUFFER_BYTES": "8192"}
    own = {f"COBRE_{backend}_TIMEOUT_SECS": "3", f"COBRE_{backend}_BUFFER_BYTES": "4096"}
    for told, expected in ((of_all, (2.5, 8192)), (own, (3, 4096)), (of_all | own, (3, 4096))):
        made = config.from_env(seat | told)
        assert (made.timeout_s, made.buffer_bytes) == expected


@pytest.mark.usefixtures("one_shm_rank")
@pytest.mark.parametrize(
    ("value", "portable"), [("0", not HAS_FUTEX), ("", not HAS_FUTEX), ("1", 1)]
)
def test_waiting_without_futex_is_turned_on_by_1_alone(monkeypatch, value, portable):
    monkeypatch.setenv("COBRE_TEST_PORTABLE_WAIT", value)
    with create_communicator() as comm:
        assert COMM.at(comm._address).portable == portable


@pytest.mark.usefixtures("one_shm_rank")
def test_choice_and_reason_are_one_line(caplog):
    with caplog.at_level(logging.INFO, logger="cobre_comm"):
        backend_of()
    [line] = [record for record in caplog.records if record.levelno == logging.INFO]
    assert line.name.startswith("cobre_comm")
    assert all(word in line.getMessage() for word in ("shm", "COBRE_SHM_NAME"))


class Carrier(LocalBackend):
    """A backend of another distribution."""

    @property
    def backend(self):
        return "carrier"


def test_backend_of_another_distribution(monkeypatch):
    entry = importlib.metadata.EntryPoint(
        "carrier", f"{__name__}:Carrier", factory.ENTRY_POINT_GROUP
    )
    monkeypatch.setattr(
        importlib.metadata, "entry_points", lambda group: [entry] if "cobre_comm" in group else []
    )
    assert "carrier" in available_backends()
    assert backend_of("carrier") == "carrier"
    monkeypatch.setenv("COBRE_COMM_BACKEND", "carrier")
    assert backend_of() == "carrier"


def test_a_plugin_does_not_replace_a_built_in_one(monkeypatch):
    entry = importlib.metadata.EntryPoint("local", "nowhere:Nothing", factory.ENTRY_POINT_GROUP)
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: [entry])
    assert available_backends().count("local") == 1
    assert backend_of("local") == "local"


@pytest.mark.usefixtures("one_shm_rank")
@pytest.mark.parametrize("graceful", [None, "SIGUSR1", [signal.SIGUSR1]])
def test_signals_that_ask_to_stop_are_given_back(monkeypatch, graceful):
    heard = []
    monkeypatch.setenv("COBRE_COMM_GRACEFUL", "SIGUSR1" if graceful is None else "SIGKILL")
    before = signal.signal(signal.SIGUSR1, lambda number, frame: heard.append(number))
    try:
        with (
            create_communicator(graceful=graceful) as comm,
            create_communicator("local", graceful=graceful) as other,
        ):
            other.close()
            signal.raise_signal(signal.SIGUSR1)
            assert not comm.stop_requested()
            comm.barrier()
            assert comm.stop_requested()
            child = os.fork()
            if child == 0:  # in a child, the handler that was set before receives the signal
                signal.raise_signal(signal.SIGUSR1)
                os._exit(len(heard))
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
        signal.raise_signal(signal.SIGUSR1)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert heard == [signal.SIGUSR1]
    with LocalBackend() as comm:
        assert not comm.stop_requested()


@pytest.mark.parametrize("wrong", ["SIGKILL", "TERM", "SIGTERM,11", [9], [9999]])
def test_signals_that_cannot_ask(wrong):
    with pytest.raises(ValueError, match="cannot ask to stop; choose from SIGTERM"):
        create_communicator("local", graceful=wrong)
