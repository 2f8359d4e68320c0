"""Two versions are refused: of our two packages in one process, and of the ranks of a job."""

import os
import pathlib
import shutil
import socket
import subprocess
import sys
from unittest import mock

import cobre_kernels
import pytest
from cobre_kernels.machine.version import hash_of, sources_of

import cobre_comm
from cobre_comm import InitializationFailed, create_communicator, sources
from cobre_comm.backends.mpi import meet
from cobre_comm.sources import own_sources
from cobre_comm.testing.cases.raised import raises
from tests.command import python
from tests.imports import folders, reached

COMM, KERNELS = (pathlib.Path(each.__file__).parent for each in (cobre_comm, cobre_kernels))
MEET = "import cobre_comm; cobre_comm.create_communicator()"
NO_BYTECODE = shutil.ignore_patterns("__pycache__")


@pytest.fixture
def clone(tmp_path):
    """A folder with a copy of each of our two packages, laid out as an installation has them."""
    for package in (COMM, KERNELS):
        shutil.copytree(package, tmp_path / package.name, ignore=NO_BYTECODE)
    return tmp_path


def changed(file):
    """Change a source: it then has another version, but does the same as before."""
    with file.open("a") as source:
        source.write("# of another version\n")


def elsewhere(*folders, **variables):
    """Return arguments for a process that finds packages in these folders, and not in ours."""
    path = os.pathsep.join(map(str, folders))
    return {"cwd": "/", "env": {**os.environ, "PYTHONPATH": path, **variables}}


def test_kernels_of_another_version_are_refused_at_import(clone):
    shutil.move(clone / "cobre_kernels", clone / "kernels" / "cobre_kernels")
    same = python("-c", "from cobre_comm import ReduceOp", **elsewhere(clone, KERNELS.parent))
    assert same.stderr == ""
    changed(clone / "kernels" / "cobre_kernels" / "local.py")
    both = python(
        "-c", "from cobre_comm import ReduceOp", **elsewhere(clone, KERNELS.parent), code=1
    )
    said = f"cobre_comm of {clone} cannot run with cobre_kernels of {KERNELS.parent}, which is"
    assert said in both.stderr
    assert f"pip install {clone}" in both.stderr
    shutil.rmtree(clone / "kernels")  # now nothing says which kernels belong to this cobre_comm
    python("-c", "from cobre_comm import ReduceOp", **elsewhere(clone, KERNELS.parent), code=1)


def test_kernels_that_have_no_hash_are_of_another_version(clone):
    old = clone / "old" / "cobre_kernels"
    shutil.copytree(clone / "cobre_kernels", old)
    (old / "machine" / "version.py").write_text("VERSION = 7  # what somebody raised by hand\n")
    done = python(
        "-c",
        "import cobre_comm.sources as s; s.check_halves()",
        **elsewhere(old.parent, clone),
        code=1,
    )
    assert f"cannot run with cobre_kernels of {old.parent}, which is of another" in done.stderr


JOBS = {
    "shm": {"COBRE_SHM_NAME": "/{}", "COBRE_SHM_SIZE": "2"},
    "tcp": {
        "COBRE_TCP_COORDINATOR": "127.0.0.1", "COBRE_TCP_PORT": "{}", "COBRE_TCP_SIZE": "2",
        "COBRE_TCP_TOKEN": "secret",
    },
}  # fmt: skip


@pytest.mark.parametrize("backend", JOBS)
def test_ranks_of_two_versions_name_both_places(clone, backend):
    changed(clone / "cobre_comm" / "errors.py")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    job = {name: value.format(port) for name, value in JOBS[backend].items()}
    job["COBRE_COMM_BACKEND"] = backend
    places = [(COMM.parent, KERNELS.parent), (clone,)]
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", MEET], text=True, stderr=subprocess.PIPE,
            **elsewhere(*path, **job, **{f"COBRE_{backend.upper()}_RANK": str(rank)}),
        )
        for rank, path in enumerate(places)
    ]  # fmt: skip
    refused = ranks[1].communicate(timeout=60)[1]
    ranks[0].kill()
    ranks[0].communicate()
    # Rank 0 was killed while it waited, and has left its segment.
    pathlib.Path("/dev/shm", str(port)).unlink(missing_ok=True)
    assert ranks[1].returncode == 1
    for (folder, *_), said in zip(places, ("rank 0 runs", "rank 1 runs"), strict=True):
        assert f"{said} the cobre_comm of {folder} (sources " in refused
    assert "use one version for all ranks" in refused


@pytest.mark.ranks(2, backends=["mpi-openmpi"], connect=False)
def test_ranks_of_two_versions_over_mpi_name_both(comm):
    from mpi4py import MPI

    ours = own_sources()
    own = ours._replace(hash=ours.hash + MPI.COMM_WORLD.rank)
    with mock.patch.object(meet, "own_sources", return_value=own):
        error = raises(InitializationFailed, create_communicator)
    assert f"rank 1 runs the {ours}, rank 0 runs the {ours}, which is another version" in str(error)


def test_ranks_compare_all_that_they_run():
    """Ranks compare each folder that they run, except ``reports``: no rank reads those reports."""
    met = folders(reached("cobre_comm.backends", "cobre_comm.mpi4py"))
    assert {*sources._OF_RANKS} == met - {"reports"}


def test_what_editors_and_archives_leave_is_no_source(clone):
    package = clone / "cobre_kernels"
    usual = hash_of(sources_of(package))
    (package / ".#local.py").symlink_to("user@machine.4711:1")
    (package / "._local.py").write_bytes(b"\0\5\26\7")
    (package / "local copy.py").write_text("")
    (package / "folder.py").mkdir()
    assert hash_of(sources_of(package)) == usual
    (clone / "cobre_comm" / ".#errors.py").symlink_to("user@machine.4711:1")
    (clone / "cobre_comm" / "jit" / ".#types.py").symlink_to("user@machine.4711:1")
    ask = (
        "from cobre_comm import sources; from cobre_comm.jit import types; "
        "print(sources.own_sources().hash, types.version_tag())"
    )
    assert python("-c", ask, **elsewhere(clone)).stdout == python("-c", ask).stdout


def test_compiled_modules_without_sources_have_a_hash(clone):
    package = clone / "cobre_kernels"
    python("-m", "compileall", "-q", "-b", package)
    for path in package.rglob("*.py"):
        path.unlink()
    assert hash_of(sources_of(package)) == hash_of(sources_of(package))


def test_ranks_from_a_zip_have_the_hash_of_their_version(clone):
    shutil.make_archive(clone / "both", "zip", clone)
    ask = "from cobre_comm.sources import own_sources; print(own_sources().hash)"
    found = {python("-c", ask, **elsewhere(clone / "both.zip")).stdout for _ in range(2)}
    assert len(found) == 1
