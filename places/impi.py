"""The place: Intel MPI, from its package on PyPI."""

import re
import sys

from places.frame import HELLO, Missing, all_met, expect, kill_one, run, trained

COBRE = "cobre-comm", "run", "--backend", "mpi", "-n"


def run_place(place, folder, stack):
    """Install Intel MPI in a folder of its own and run jobs; return the versions."""
    home = folder / "impi"
    words = "--prefix", home, "--ignore-installed", "impi-rt"
    done = run(sys.executable, "-m", "pip", "install", "-q", *words, within_s=400)
    if done.code:
        raise Missing(f"impi-rt from PyPI: {done.output.splitlines()[-1]}")
    extra = {
        "MPI4PY_MPIABI": "impi",
        "LD_LIBRARY_PATH": str(home / "lib"),
        "I_MPI_ROOT": str(home),
        "I_MPI_FABRICS": "shm",
        "I_MPI_THREAD_YIELD": "2",  # ranks may outnumber cores
    }
    for ranks in (2, 4):
        command = f"MPI4PY_MPIABI=impi cobre-comm run --backend mpi -n {ranks} hello_ranks.py"
        with place.row(f"{ranks} ranks", command) as seen:
            seen.append(all_met(run(*COBRE, ranks, HELLO, **extra), ranks, "mpi"))
    with place.row("conformance", "cobre-comm check --quick --backends mpi-impi") as seen:
        done = run(
            "cobre-comm", "check", "--quick", "--backends", "mpi-impi", within_s=500, **extra
        )
        found = re.findall(r"\d+ checks passed", done.output)
        expect(done.code == 0 and found, done)
        seen += found[:1]
    with place.row("SDDP: one hash", "cobre-comm run --backend mpi -n 2 train.py") as seen:
        out = folder / "result.json"
        seen.append(trained(lambda *words: run(*COBRE, 2, *words, within_s=400, **extra), out))
    with place.row("a rank is killed", "kill -9 of one rank of 3") as seen:
        seen.append(kill_one([*COBRE, 3], 3, **extra))
    code = "from mpi4py import MPI; print(MPI.Get_library_version())"
    return run(sys.executable, "-c", code, **extra).output.split("\n")[0].strip()
