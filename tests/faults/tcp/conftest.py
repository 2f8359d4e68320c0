import pytest

from tests.faults.tcp.job import Job, open_sockets


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
