"""``cobre-comm status --serve`` shows jobs to a browser on this machine, and to nobody else."""

import contextlib
import http.client
import json
import re
import signal
import socket
import struct
import sys
import time

import psutil
import pytest

from tests.launch.command import DEADLINE_S, PATIENT, PROGRAMS, Running, cobre
from tests.launch.seeing.test_status import job_of, status_until

REPORTS = 5  # the number of reports of reports.py
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")


class Page:
    """A running server, and a client that asks it."""

    def __init__(self, *words):
        self.running = Running("status", "--serve", *words)

    def __enter__(self):
        url = self.running.process.stdout.readline().strip()
        self.host, self.path = re.fullmatch(r"http://([^/]+)(/[\w-]{22}/)", url).groups()
        assert self.host.startswith("127.0.0.1:")
        return self

    def __exit__(self, *exception):
        self.running.__exit__(*exception)

    def ask(self, path, host=None, method="GET"):
        """Return the status, the headers and the content of an answer."""
        client = http.client.HTTPConnection(self.host, timeout=DEADLINE_S)
        try:
            client.request(method, path, headers={"Host": host or self.host})
            answer = client.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            client.close()

    def jobs(self):
        """Return the jobs that the page draws."""
        status, headers, content = self.ask(f"{self.path}jobs.json")
        assert (status, headers["Content-Type"]) == (200, "application/json")
        return json.loads(content)["jobs"]


@pytest.fixture(scope="module")
def page():
    with Page("no-such-job") as served:
        yield served


def test_it_shows_what_the_ranks_of_a_job_do_and_report():
    with Running("run", "-n", 3, "--backend", "shm", *PATIENT, PROGRAMS / "reports.py") as running:
        name = job_of(running.wait_ready(3)[0][0])
        with Page(name) as page:
            deadline = time.monotonic() + DEADLINE_S
            while not (jobs := page.jobs()) or not jobs[0]["waits"]:
                assert time.monotonic() < deadline, jobs
            [job] = jobs
    assert (job["name"], job["backend"], job["size"], job["unseen"]) == (name, "shm", 3, [])
    assert [rank["rank"] for rank in job["ranks"]] == [0, 1, 2]
    assert [rank["phase"] for rank in job["ranks"]] == ["training"] * 3
    assert job["ranks"][1]["state"] == "computing"
    assert job["ranks"][1]["calls"][0]["call"] == f"#{REPORTS} barrier()"
    assert re.match(r"rank 1, by (rank 0|rank 2|ranks 0 and 2), for", job["waits"][0])
    [phase] = [phase for phase in job["phases"] if phase["phase"] == "training"]
    assert phase["computing_s"] > 0
    # no time of the ranks is outside the phase
    of_ranks = sum(rank["computing_s"] for rank in job["ranks"])
    assert of_ranks == pytest.approx(3 * phase["computing_s"])
    [reported] = job["reports"]
    assert (reported["rank"], reported["names"]) == (0, ["lower bound", "upper bound"])
    assert reported["values"] == [[70 - 1 / n, 71 + 1 / n] for n in range(1, REPORTS + 1)]
    assert reported["ago_s"] == sorted(reported["ago_s"], reverse=True)


def test_status_prints_what_was_reported_last():
    with Running("run", "-n", 2, "--backend", "shm", *PATIENT, PROGRAMS / "reports.py") as running:
        said = status_until(job_of(running.wait_ready(2)[0][0]), "reported")
    assert re.search(
        r"\n  rank 0 reported [\d.]+ s ago: lower bound 69.8, upper bound 71.2\n", said
    )


def test_the_page_loads_nothing_from_elsewhere(page):
    status, headers, content = page.ask(page.path)
    assert (status, headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert headers["Content-Security-Policy"].startswith("default-src 'none'; ")
    addresses = re.findall(r"https?://[^\"' ]+|(?:src|href)=\"[^\"]+", content.decode())
    # these are names, not addresses that are loaded
    assert set(addresses) == {"http://www.w3.org/2000/svg", 'href="data:,'}


@pytest.mark.parametrize(
    "path", ["/", "/jobs.json", "/favicon.ico", "{page}x", "{page}../", "{shorter}"]
)
def test_nothing_is_answered_at_another_path(page, path):
    asked = path.format(page=page.path, shorter=page.path[:-2] + "/")
    assert page.ask(asked)[0] == 404


@pytest.mark.parametrize(
    "name", ["example.com", "127.0.0.1.example.com", "10.0.0.1", "localhost.", ""]
)
def test_a_request_under_another_name_is_refused(page, name):
    port = page.host.partition(":")[2]
    for path in (page.path, f"{page.path}jobs.json"):
        assert page.ask(path, host=f"{name}:{port}")[0] == 403


def test_a_tunnel_may_have_another_port(page):
    assert page.ask(page.path, host="localhost:8000")[0] == 200


def test_it_only_reads(page):
    for method in ("POST", "PUT", "DELETE"):
        assert page.ask(page.path, method=method)[0] == 501


def test_nobody_else_can_make_it_speak_or_stop_it():
    """Other users reach the port; they break off or stay silent, and the server still answers."""
    with Page("no-such-job") as page:
        process = psutil.Process(page.running.process.pid)
        process.rlimit(psutil.RLIMIT_NOFILE, (100, 100))
        host, port = page.host.split(":")
        for said in (b"", b"GET ", b"\0\xff\n\n", b"GET /\xff HTTP/9.9\r\n\r\n"):
            client = socket.create_connection((host, int(port)))
            client.sendall(said)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.close()
        with contextlib.ExitStack() as stack:
            for _ in range(150):
                stack.enter_context(socket.create_connection((host, int(port))))
            assert page.jobs() == []
            process.rlimit(psutil.RLIMIT_NOFILE, (48, 48))
            stack.enter_context(socket.create_connection((host, int(port))))
            before = sum(process.cpu_times()[:2])
            began = time.monotonic()
            time.sleep(1.0)
            used = sum(process.cpu_times()[:2]) - before
            assert used < 0.3 * (time.monotonic() - began), "the server polls all the time"
            assert page.ask(page.path)[0] == 200
        page.running.process.send_signal(signal.SIGINT)
        _, _, errors = page.running.finish(DEADLINE_S)
        assert errors == ""


def test_ctrl_c_ends_it():
    with Page() as page:
        page.running.process.send_signal(signal.SIGINT)
        status, _, errors = page.running.finish()
        assert (status, errors) == (130, "")


def test_a_port_that_is_taken_is_named(page):
    port = page.host.partition(":")[2]
    done = cobre("status", "--serve", "--port", port)
    assert done.returncode == 2
    told = f"cobre-comm status: error: port {port} cannot be used: Address already in use\n"
    assert done.stderr == told


def test_a_port_without_the_page_is_refused():
    done = cobre("status", "--port", 8000)
    assert (done.returncode, done.stdout) == (2, "")
    assert "it needs --serve" in done.stderr
