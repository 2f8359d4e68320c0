"""The place: Dask on one machine and on two hosts, and the executors of Python and of loky."""

import json
import subprocess
import sys

from places.frame import CASE, PROGRAMS, ROOT, Failed, Missing, environment, run, tool, wait_until
from tests.network.hosts import CannotMakeHosts, Network

PROGRAM = PROGRAMS / "on_executor.py"
SIZE = 4
PORT = 8786


def run_place(place, folder, stack):
    """Install Dask and loky and run all launches; return the versions."""
    python = _python(folder)
    run(sys.executable, "-m", "venv", folder / "venv")
    install = [python, "-m", "pip", "install", "-q"]
    done = run(*install, "distributed", "loky", "-e", f"{ROOT}[notebook]", within_s=600)
    if done.code:
        raise Missing(f"packages from PyPI: {done.output.splitlines()[-1]}")
    hashes = set()
    for kind, name in (
        ("pool", "ProcessPoolExecutor"),
        ("loky", "loky"),
        ("dask", "Dask, LocalCluster"),
    ):
        hashes.add(_try(place, name, [SIZE], lambda kind=kind: _run(folder, kind)))
    try:
        tool("ip", "iproute2")
        network = stack.enter_context(Network(3))
        hashes.add(_try(place, "Dask on two hosts", [2, 2], lambda: _on_hosts(folder, network)))
    except (CannotMakeHosts, Missing) as reason:
        print(f"left out: Dask on two hosts: {reason}")
    with place.row("SDDP: one hash", "each of these") as seen:
        if len(hashes) != 1 or "" in hashes:
            raise Failed(f"not one: {hashes}")
        seen.append(hashes.pop()[:12])
    return _versions(python)


def _versions(python):
    code = "import dask, loky, numba; print('Dask', dask.__version__, 'loky', loky.__version__)"
    return run(python, "-c", code).output.strip()


def _python(folder):
    return folder / "venv" / "bin" / "python"


def _run(folder, kind):
    return run(_python(folder), PROGRAM, kind, SIZE, CASE, within_s=300, **_kept_in(folder))


def _kept_in(folder):
    """Return a variable that names the folder for Dask's temporary files."""
    return {"DASK_TEMPORARY_DIRECTORY": str(folder)}


def _on_hosts(folder, network):
    """Run scheduler and client on the first host, and two workers on each other host."""
    head, *others = network.hosts
    cli = [str(_python(folder)), "-m", "distributed.cli"]
    scheduler = [
        f"{cli[-1]}.dask_scheduler",
        "--host",
        head.address,
        "--port",
        str(PORT),
        "--no-dashboard",
    ]
    worker = [f"{cli[-1]}.dask_worker", f"tcp://{head.address}:{PORT}", "--nworkers", "2",
              "--nthreads", "1", "--no-dashboard"]  # fmt: skip
    log = folder / "dask.log"
    with log.open("w") as output:
        for host, words in [(head, scheduler), *((host, worker) for host in others)]:
            with host.inside():
                subprocess.Popen([*cli[:2], *words], stdout=output, stderr=output,
                                 env=environment(**_kept_in(folder)), cwd=folder)  # fmt: skip
    wait_until(lambda: log.read_text().count("Register worker") >= SIZE, 90, "four workers of Dask")
    with head.inside():
        return _run(folder, f"tcp://{head.address}:{PORT}")


def _try(place, name, nodes, start):
    """Add the row of one executor; return the hash of the cuts that the example trains on it."""
    with place.row(name, "launch(fn, 4, executor=...)") as seen:
        done = start()
        found = [line for line in done.output.splitlines() if line.startswith("{")]
        if done.code or not found:
            raise Failed(done.output[-300:])
        said = json.loads(found[0])
        _check(said, nodes)
        times = {what: f"{seconds} s" for what, (_, seconds) in said.items()}
        seen += [
            f"ranks that share memory: {' + '.join(map(str, nodes))}",
            f"first launch {times['first']}, next {times['again']}",
            f"known after: a failure {times['fails']}, a death {times['dies']}",
            f"workers are free {times['interrupted']} after the start of a launch with Ctrl-C",
        ]
        return said["sddp"][0][0]
    return ""


def _check(said, nodes):
    """Raise Failed unless every launch had the expected outcome."""
    total = SIZE * (SIZE - 1) // 2
    for what in ("first", "again", "after"):
        if [value[0] for value in said[what][0]] != [total] * SIZE:
            raise Failed(f"{what}: {said[what][0]}")
    met = sorted(size for _, _, size in said["first"][0])
    if met != sorted(size for size in nodes for _ in range(size)):
        raise Failed(f"nodes: {met}")
    for what, words in _ERRORS.items():
        if words not in str(said[what][0]):
            raise Failed(f"{what}: {said[what][0]}")


_ERRORS = {
    "more": "5 ranks need one each",
    "fails": "rank 1 raised KeyError",
    "interrupted": "KeyboardInterrupt: launch has ended its 4 ranks",
    "dies": "WorkerError: rank",
}
