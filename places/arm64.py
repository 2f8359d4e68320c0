"""The place: a Debian of aarch64 under emulation, with wheels for aarch64; ours is built there.

Emulation shows that code and protocols are right, and that results have the same bits. The emulated
memory is ordered like the memory of this machine, so emulation cannot show mistakes that only a
weak ordering reveals. A test checks the orderings in code compiled for aarch64 instead.
"""

import contextlib
import pathlib
import re
import shutil
import sys
import tomllib
import zipfile

from places.debian import Debian
from places.frame import (
    CASE,
    HELLO,
    ROOT,
    TRAIN,
    Done,
    Missing,
    all_met,
    begun,
    expect,
    kill_one,
    need_root,
    run,
    tool,
    trained,
)

QEMU = "/usr/bin/qemu-aarch64-static"
KNOWN = pathlib.Path("/proc/sys/fs/binfmt_misc")
MAGIC = (
    r":cobre-aarch64:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00"
    r":\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff"
    f":{QEMU}:F"
)
SUM = "import time; t = time.process_time(); sum(range(3_000_000)); print(time.process_time() - t)"
VERSIONS = """import numba, numpy, platform as p
print(p.machine(), "Python", p.python_version(), end=" ")
print("numba", numba.__version__, "NumPy", numpy.__version__)"""
HIDES_NUMBA = "import sys; sys.modules['numba'] = None\n"
# The tests of `make quick`, without those of MPI, which is missing here, and without the example,
# which has a row of its own.
LOOP = "tests/conformance", "tests/launch/workers"
ORDERINGS = "tests/kernels/test_atomics.py"


def run_place(place, folder, stack):
    """Set up the Debian and run jobs; return the versions."""
    need_root()
    tool("qemu-aarch64-static", "qemu-user-static")
    site = folder / "site"
    debian = Debian(folder / "debian", "bookworm", ["python3"], [ROOT, folder], "arm64")
    if not site.exists():
        _install(site)
    stack.enter_context(_emulation())
    python = debian.command("/usr/bin/python3", cwd=ROOT)
    factor = _factor(place, python)
    _build(place, python, site, factor)
    extra = {
        "PYTHONPATH": str(site),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "HOME": "/root",
        "LANG": "C.UTF-8",
        "COBRE_TEST_LIMITS": str(factor),
    }
    # The folder is outside the repository, so that Python does not import the repository's package.
    cobre = *debian.command("/usr/bin/python3", cwd=folder), "-m", "cobre_comm"
    with place.row("kernels", "cobre-comm compile") as seen:
        done = run(*cobre, "compile", within_s=100 * factor, **extra)
        expect(done.code == 0 and str(site) in done.output, done)
        seen += re.findall(r"machine code: .*/(\S+)", done.output)
    hiding = folder / "hiding"
    hiding.mkdir(exist_ok=True)
    (hiding / "sitecustomize.py").write_text(HIDES_NUMBA)
    without = {**extra, "PYTHONPATH": f"{hiding}:{site}"}
    for backend in ("local", "shm", "tcp"):
        ranks = 1 if backend == "local" else 2
        words = "run", "-n", ranks, "--backend", backend, HELLO
        with place.row(
            f"{ranks} x {backend}", f"cobre-comm {' '.join(map(str, words[:-1]))} hello_ranks.py"
        ) as seen:
            done = run(*cobre, *words, within_s=100 * factor, **without)
            seen.append(f"{all_met(done, ranks, backend)}, without numba")
    words = "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "quick", "-k", "not mpi"
    with (
        place.row("the quick loop", f"pytest -m quick -k 'not mpi' {' '.join(LOOP)}") as seen,
        begun(*python, *words, *LOOP, **extra) as loop,
    ):
        _train(place, [*cobre, "run", "-n"], factor, folder, extra)  # while the tests run
        output, _ = loop.communicate(timeout=300 * factor)
        expect(loop.returncode == 0 and "skipped" not in output, Done(loop.returncode, output))
        seen += re.findall(r"\d+ passed.* in [\d.]+s", output)
    with place.row("orderings in code compiled for aarch64", f"pytest {ORDERINGS}") as seen:
        done = run(sys.executable, "-m", "pytest", "-q", ORDERINGS, cwd=ROOT)
        expect(done.code == 0 and "skipped" not in done.output, done)
        seen.append(re.findall(r"\d+ passed", done.output)[0] + ", without emulation")
    return run(*python, "-c", VERSIONS, **extra).output.strip()


def _train(place, start, factor, folder, extra):
    """Train the example, and kill a rank."""
    with place.row("SDDP: one hash", "cobre-comm run -n 2 train.py") as seen:
        words = TRAIN, CASE, "--quiet", "--iterations", 0  # compiles, before two ranks start
        done = run(*start, 1, "--backend", "shm", *words, within_s=300 * factor, **extra)
        expect(done.code == 0, done)
        limit_s = 100 * factor
        out = folder / "result.json"
        seen.append(trained(lambda *words: run(*start, 2, *words, within_s=limit_s, **extra), out))
    with place.row("a rank is killed", "kill -9 of one rank of 2") as seen:
        seen.append(kill_one([*start, 2], 2, 60 * factor, **extra))


def _install(site):
    """Unpack wheels for aarch64: what the build of our wheel needs, and the tools of the tests."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    builds = project["build-system"]["requires"]
    done = _unpack(site, *builds, "numba", "psutil", "pytest", "pytest-timeout")
    if done.code:
        raise Missing(f"wheels of aarch64: {done.output.splitlines()[-1]}")


def _unpack(site, *words):
    platforms = [f"--platform=manylinux_2_{n}_aarch64" for n in (17, 27, 28)]
    chosen = "--only-binary=:all:", "--python-version=3.11", "--implementation=cp", *platforms
    pip = sys.executable, "-m", "pip", "install", "-q", "--target", site
    return run(*pip, *chosen, *words, within_s=400)


def _build(place, python, site, factor):
    """Build our wheel, with machine code, in the Debian, and unpack the wheel."""
    wheels = site.parent / "wheels"
    shutil.rmtree(wheels, ignore_errors=True)
    command = "-m", "hatchling", "build", "-t", "wheel", "-d"
    with place.row("our wheel", " ".join(["python", *command, "FOLDER"])) as seen:
        done = run(*python, *command, wheels, within_s=200 * factor, PYTHONPATH=str(site))
        expect(done.code == 0, done)
        [wheel] = wheels.glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            code = [pathlib.Path(n).name for n in archive.namelist() if "/code/" in n]
        seen += [wheel.name, " ".join(code)]
        expect(code == ["generic.aarch64-linux.so"], done)
        done = _unpack(site, "--upgrade", "--no-deps", wheel)
        expect(done.code == 0, done)


@contextlib.contextmanager
def _emulation():
    """Let the kernel start programs of aarch64 by QEMU, unless the kernel does so already."""
    if any("aarch64" in path.name for path in KNOWN.iterdir()):
        yield
        return
    with contextlib.ExitStack() as stack:
        if not (KNOWN / "register").exists():
            done = run("mount", "-t", "binfmt_misc", "none", KNOWN)
            if done.code:
                raise Missing(f"the kernel starts no foreign programs: {done.output.strip()}")
            stack.callback(run, "umount", KNOWN)
        (KNOWN / "register").write_text(MAGIC)
        stack.callback((KNOWN / "cobre-aarch64").write_text, "-1")
        yield


def _factor(place, python):
    """Return the factor by which emulation is slower, at least 1."""
    with place.row("how slow emulation is", "python -c 'sum(range(3_000_000))'") as seen:
        here = float(run(sys.executable, "-c", SUM).output)
        done = run(*python, "-c", SUM)
        expect(done.code == 0, done)
        factor = max(1.0, round(float(done.output) / here, 1))
        seen.append(f"{factor} times; limits of tests are multiplied by it")
        return factor
    return 1.0
