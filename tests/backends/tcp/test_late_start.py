"""Ranks of which one does not come: rank 0 says so once, for all that are attached to it."""

import logging
import threading

import pytest

from cobre_comm import InitializationFailed, TcpConfig
from cobre_comm.backends.tcp.rendezvous import meet, participant
from cobre_comm.processes.port import ReservedPort

SIZE = 4
LIMIT_MS = 1500


def wait_in_vain(*ranks):
    """Let these ranks meet in threads, while another one never comes."""
    failed = []

    def attach(rank, port):
        config = TcpConfig(
            rank=rank, size=SIZE, coordinator="127.0.0.1", port=port, bind_addr="127.0.0.1",
            connect_timeout_ms=LIMIT_MS,
        )  # fmt: skip
        with pytest.raises(InitializationFailed), meet(config):
            pass
        failed.append(rank)

    with ReservedPort() as reserved:
        threads = [threading.Thread(target=attach, args=(r, reserved.port)) for r in ranks]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(failed) == list(ranks)


@pytest.mark.parametrize(("ranks", "speakers"), [((0, 1, 2), {0}), ((1, 2), {1, 2})])
def test_rank_0_speaks_for_the_ranks_that_have_found_it(ranks, speakers, monkeypatch, caplog):
    monkeypatch.setattr(participant, "LOG_WAIT_AFTER_S", LIMIT_MS / 1000 / 3)
    with caplog.at_level(logging.WARNING, "cobre_comm"):
        wait_in_vain(*ranks)
    lines = [record.getMessage() for record in caplog.records]
    assert {int(line.split()[2]) for line in lines if "still waits" in line} == speakers
