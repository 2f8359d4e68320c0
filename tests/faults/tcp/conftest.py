import threading

import pytest

from cobre_comm.backends.tcp.rendezvous import worker
from cobre_comm.processes.port import ReservedPort
from tests.faults.tcp.job import Job, once_attached, open_sockets


@pytest.fixture
def free_port():
    """A port at which no other process listens while the test runs."""
    with ReservedPort("0.0.0.0") as reserved:
        yield reserved.port


@pytest.fixture
def new_job():
    before, jobs = open_sockets(), []

    def new(size, **config):
        jobs.append(Job(size, **config))
        return jobs[-1]

    yield new
    for job in jobs:
        job.close()
    assert open_sockets() <= before


@pytest.fixture
def worker_attached(monkeypatch):
    """Return an event that is set when rank 0 has accepted a worker, which is a thread here."""
    event = threading.Event()
    # so that monkeypatch restores this method after the test
    monkeypatch.setattr(worker.Joiner, "_open_control", worker.Joiner._open_control)
    once_attached(event.set)
    return event
