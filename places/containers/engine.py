"""podman with storage of its own; it builds the image of examples/Containerfile on a Debian."""

import pathlib
import shutil
import subprocess
import sys

from places.frame import PROGRAMS, ROOT, Missing, environment, expect, need_root, run, tool

RUNTIME = pathlib.Path(__file__).parent / "runtime_without_limits.py"
MIRROR = "http://deb.debian.org/debian/"


class Engine:
    """podman, with containers that are removed when the stack closes.

    Parameters
    ----------
    folder : pathlib.Path
        The scratch folder.
    stack : contextlib.ExitStack
        Removes the containers.
    """

    def __init__(self, folder, stack):
        need_root()
        for name in ("podman", "runc", "debootstrap"):
            tool(name, name)
        self._folder = folder
        self._podman = [
            tool("podman", "podman"), "--root", folder / "storage", "--runroot", folder / "run",
            "--storage-driver", "vfs", "--cgroup-manager", "cgroupfs", "--events-backend", "file",
            "--runtime", RUNTIME,
        ]  # fmt: skip
        stack.callback(self._podman_run, "rm", "--all", "--force", "--time", "0")

    def _podman_run(self, *words, within_s=120):
        return run(*self._podman, *words, within_s=within_s)

    def import_debian(self):
        """Make the image of Debian on which the example's image is based, if it is missing."""
        if not self._podman_run("image", "exists", "debian").code:
            return
        base = self._folder / "debian"
        options = "--variant=minbase", "--include=python3,python3-venv"
        debootstrap = tool("debootstrap", "debootstrap")
        done = run(debootstrap, *options, "bookworm", base, MIRROR, within_s=900)
        if done.code:
            raise Missing(f"debootstrap cannot fetch Debian: {done.output.splitlines()[-1]}")
        archive = self._folder / "debian.tar"
        run("tar", "-C", base, "-cf", archive, ".", within_s=200)
        shutil.rmtree(base)
        done = self._podman_run("import", archive, "debian", within_s=300)
        archive.unlink()
        if done.code:
            raise Missing(f"podman import: {done.output.splitlines()[-1]}")

    def build(self):
        """Build the image of the example from wheels that this machine's pip has fetched."""
        context = self._folder / "context"
        shutil.rmtree(context, ignore_errors=True)
        context.mkdir()
        shutil.copy(ROOT / "examples" / "Containerfile", context)
        pip = sys.executable, "-m", "pip"
        done = run(*pip, "wheel", "-q", "--no-deps", "-w", context, ROOT, within_s=300)
        expect(done.code == 0, done)
        platforms = [f"--platform=manylinux_2_{n}_x86_64" for n in (17, 27, 28)]
        words = "--only-binary=:all:", "--python-version=3.11", *platforms, "numba"
        done = run(*pip, "download", "-q", "-d", context, *words, within_s=300)
        if done.code:
            raise Missing(f"wheels from PyPI: {done.output.splitlines()[-1]}")
        words = "--isolation=chroot", "--env=PIP_NO_INDEX=1", "--build-arg=BASE=localhost/debian"
        done = self._podman_run("build", *words, "-t", "training", context, within_s=800)
        expect(done.code == 0, done)
        return done

    def command(self, *words, options=(), network="none"):
        """Return the command of podman that runs ``words`` in a container."""
        mounts = [f"--volume={ROOT}/examples:/examples:ro", f"--volume={PROGRAMS}:/programs:ro"]
        network = f"--network={network}"
        return [
            str(w)
            for w in (*self._podman, "run", "--rm", network, *mounts, *options, "training", *words)
        ]

    def run(self, *words, options=(), within_s=200):
        """Run a command in a container to its end."""
        return run(*self.command(*words, options=options), within_s=within_s)

    def start(self, *words, options=(), network="none"):
        """Start a container; return its process, with a pipe as output."""
        return subprocess.Popen(
            self.command(*words, options=options, network=network), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment(),
        )  # fmt: skip

    def tell(self, *words):
        """Run another command of podman; return the output of the command."""
        done = self._podman_run(*words)
        expect(done.code == 0, done)
        return done.output
