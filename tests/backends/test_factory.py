import importlib.metadata
import logging

import pytest

from cobre_comm import (
    BackendKind,
    BackendNotAvailable,
    InitializationFailed,
    InvalidBackend,
    LocalBackend,
    MissingConfiguration,
    ShmConfig,
    available_backends,
    create_communicator,
    factory,
)
from cobre_comm.testing import new_job_name

ANNOUNCING = [
    *factory.MPI_LAUNCH_VARIABLES,
    "COBRE_COMM_BACKEND",
    "COBRE_SHM_NAME",
    "COBRE_SHM_RANK",
    "COBRE_SHM_SIZE",
    "COBRE_TCP_COORDINATOR",
    "COBRE_TCP_RANK",
    "COBRE_TCP_SIZE",
]


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch):
    for name in ANNOUNCING:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def one_shm_rank(monkeypatch):
    monkeypatch.setenv("COBRE_SHM_NAME", new_job_name())
    monkeypatch.setenv("COBRE_SHM_RANK", "0")
    monkeypatch.setenv("COBRE_SHM_SIZE", "1")


def backend_of(*arguments):
    with create_communicator(*arguments) as comm:
        assert (comm.rank, comm.size) == (0, 1)
        return comm.backend


def test_local_without_any_announcement():
    assert backend_of() == "local"
    assert backend_of(None) == "local"
    assert backend_of(BackendKind.AUTO) == "local"
    assert backend_of(BackendKind.LOCAL) == "local"
    assert backend_of("local") == "local"


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


def detected(environ, available, monkeypatch):
    monkeypatch.setattr(factory, "_has_mpi", lambda: "mpi" in available)
    return factory._detect(environ)


EVERYTHING = {"COBRE_TCP_COORDINATOR": "host", "COBRE_SHM_NAME": "/x"}
ALL = ("local", "shm", "tcp", "mpi")


@pytest.mark.parametrize("variable", factory.MPI_LAUNCH_VARIABLES)
def test_auto_takes_mpi_first(monkeypatch, variable):
    name, reason = detected({variable: "0", **EVERYTHING}, ALL, monkeypatch)
    assert name == "mpi"
    assert variable in reason


def test_auto_takes_tcp_before_shm(monkeypatch):
    assert detected(EVERYTHING, ALL, monkeypatch)[0] == "tcp"


def test_auto_takes_shm_before_local(monkeypatch):
    assert detected({"COBRE_SHM_NAME": "/x"}, ALL, monkeypatch)[0] == "shm"
    assert detected({}, ALL, monkeypatch)[0] == "local"
    assert detected({"COBRE_SHM_NAME": ""}, ALL, monkeypatch)[0] == "local"


def test_auto_without_mpi_does_not_take_it(monkeypatch):
    environ = {"SLURM_PROCID": "3", "COBRE_SHM_NAME": "/x"}
    assert detected(environ, ("local", "shm"), monkeypatch)[0] == "shm"


@pytest.mark.parametrize("variable", ["PMI_SIZE", "OMPI_COMM_WORLD_SIZE"])
def test_auto_does_not_turn_an_mpi_job_into_many_rank_zeros(monkeypatch, variable):
    with pytest.raises(BackendNotAvailable) as caught:
        detected({variable: "4"}, ("local", "shm"), monkeypatch)
    assert caught.value.requested == "mpi"
    assert detected({variable: "1"}, ("local", "shm"), monkeypatch)[0] == "local"


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
    monkeypatch.setattr(factory, "_has_mpi", lambda: False)
    assert "mpi" not in available_backends()
    with pytest.raises(BackendNotAvailable) as caught:
        create_communicator(kind)
    assert caught.value.requested == "mpi"
    assert "local" in caught.value.available
    assert "pip install" in caught.value.suggestion


def test_available_backends():
    assert available_backends()[:1] == ["local"]
    assert "shm" in available_backends()
    assert len(set(available_backends())) == len(available_backends())


def test_missing_configuration_lists_all(monkeypatch):
    with pytest.raises(MissingConfiguration) as caught:
        create_communicator(BackendKind.SHM)
    assert caught.value.missing_vars == ("COBRE_SHM_NAME", "COBRE_SHM_RANK", "COBRE_SHM_SIZE")
    monkeypatch.setenv("COBRE_SHM_RANK", "0")
    with pytest.raises(MissingConfiguration) as caught:
        create_communicator("shm")
    assert caught.value.missing_vars == ("COBRE_SHM_NAME", "COBRE_SHM_SIZE")
    assert "COBRE_SHM_NAME, COBRE_SHM_SIZE" in caught.value.suggestion


@pytest.mark.usefixtures("one_shm_rank")
@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("COBRE_SHM_NAME", "no-slash"),
        ("COBRE_SHM_NAME", "/two/slashes"),
        ("COBRE_SHM_NAME", "/"),
        ("COBRE_SHM_NAME", "/" + 300 * "x"),
        ("COBRE_SHM_RANK", "one"),
        ("COBRE_SHM_RANK", "-1"),
        ("COBRE_SHM_RANK", "1"),
        ("COBRE_SHM_SIZE", "0"),
        ("COBRE_SHM_SIZE", "1.0"),
        ("COBRE_SHM_SIZE", "100000000"),
        ("COBRE_SHM_TIMEOUT_SECS", "soon"),
        ("COBRE_SHM_TIMEOUT_SECS", "-1"),
        ("COBRE_SHM_TIMEOUT_SECS", "nan"),
        ("COBRE_SHM_TIMEOUT_SECS", "1e300"),
        ("COBRE_SHM_BUFFER_BYTES", "100"),
        ("COBRE_SHM_BUFFER_BYTES", "1e6"),
        ("COBRE_SHM_BUFFER_BYTES", "9223372036854775807"),
        ("COBRE_SHM_NUMA_INTERLEAVE", "yes"),
        ("COBRE_COMM_SPIN_US", "-3"),
        ("COBRE_COMM_SPIN_US", "1e300"),
    ],
)
def test_garbage_in_the_environment(monkeypatch, variable, value):
    monkeypatch.setenv(variable, value)
    with pytest.raises(InitializationFailed) as caught:
        create_communicator("shm")
    assert caught.value.backend == "shm"


@pytest.mark.usefixtures("one_shm_rank")
def test_values_are_taken(monkeypatch):
    monkeypatch.setenv("COBRE_SHM_TIMEOUT_SECS", "2.5")
    monkeypatch.setenv("COBRE_SHM_BUFFER_BYTES", "8192")
    monkeypatch.setenv("COBRE_SHM_NUMA_INTERLEAVE", "1")
    monkeypatch.setenv("COBRE_COMM_SPIN_US", "7")
    config = ShmConfig.from_env()
    taken = (config.timeout_s, config.buffer_bytes, config.numa_interleave, config.spin_us)
    assert taken == (2.5, 8192, True, 7.0)
    assert backend_of(config) == "shm"


@pytest.mark.usefixtures("one_shm_rank")
def test_choice_and_reason_are_one_line(caplog):
    with caplog.at_level(logging.INFO, logger="cobre_comm"):
        backend_of()
    lines = [record for record in caplog.records if record.levelno == logging.INFO]
    assert len(lines) == 1
    assert lines[0].name.startswith("cobre_comm")
    text = lines[0].getMessage()
    assert "shm" in text
    assert "COBRE_SHM_NAME" in text


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
