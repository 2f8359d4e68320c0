"""A Debian in a folder, unpacked from packages of another suite or for another processor."""

import pathlib
import shutil
import subprocess

from places.frame import Missing, run, tool

MIRROR = "http://deb.debian.org/debian/"
MERGED = "bin", "sbin", "lib", "lib64"
# Only this shell and its children see the mounts. $0 is the folder of the Debian, and $1 the
# working directory of the command. The next arguments are the folders of this machine that the
# command sees, then --, then the command.
ENTER = """set -e; root=$0 cwd=$1; shift
mount --rbind /proc "$root/proc"; mount --rbind /dev "$root/dev"; mount -t tmpfs tmpfs "$root/tmp"
while [ "$1" != -- ]; do mkdir -p "$root$1"; mount --bind "$1" "$root$1"; shift; done; shift
exec chroot "$root" /usr/bin/env -C "$cwd" "$@" """


class Debian:
    """Programs of another Debian, which see a few folders of this machine.

    Parameters
    ----------
    folder : pathlib.Path
        The folder into which the Debian is unpacked; a Debian that is there already is used.
    suite : str
        For example ``"bookworm"`` or ``"sid"``.
    packages : sequence of str
        Packages besides the essential ones.
    seen : sequence of pathlib.Path
        Folders of this machine that programs of the Debian see under the same names.
    arch : str, optional
        Debian's name of a processor.

    Raises
    ------
    Missing
        If the packages cannot be fetched.
    """

    def __init__(self, folder, suite, packages, seen, arch="amd64"):
        self._root, self._seen = folder, seen
        if not (folder / "unpacked").exists():
            self._fetch(suite, packages, arch)

    def _fetch(self, suite, packages, arch):
        """Unpack packages, but run none of their scripts: no processor is emulated yet."""
        words = "--download-only", "--variant=minbase", f"--arch={arch}"
        chosen = f"--include={','.join(packages)}"
        shutil.rmtree(self._root, ignore_errors=True)
        done = run(tool("debootstrap", "debootstrap"), *words, chosen, suite, self._root, MIRROR,
                   within_s=600)  # fmt: skip
        found = sorted((self._root / "var/cache/apt/archives").glob("*.deb"))
        if done.code or not found:
            raise Missing(f"debootstrap cannot fetch {suite}: {done.output.splitlines()[-1]}")
        for name in MERGED:
            (self._root / "usr" / name).mkdir(parents=True, exist_ok=True)
            if not (self._root / name).exists():
                (self._root / name).symlink_to(f"usr/{name}")
        for package in found:
            self._unpack(package)
        for name in ("etc/resolv.conf", "etc/ssl/certs/ca-certificates.crt", "etc/pip.conf"):
            here = pathlib.Path("/", name)
            (self._root / name).parent.mkdir(parents=True, exist_ok=True)
            if here.exists():
                shutil.copy(here, self._root / name)
        (self._root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
        (self._root / "unpacked").touch()

    def _unpack(self, package):
        with subprocess.Popen(
            ["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE
        ) as tar:
            words = "tar", "-x", "--keep-directory-symlink", "-C", self._root
            subprocess.run(words, stdin=tar.stdout, check=True)
        package.unlink()

    def command(self, *words, cwd="/"):
        """Return the command that runs these words in this Debian."""
        enter = "unshare", "--mount", "sh", "-c", ENTER
        return [*enter, self._root, cwd, *self._seen, "--", *words]
