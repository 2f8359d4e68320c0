"""The two files of a release: build them, and check their bytes and metadata."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import zipfile
from pathlib import Path

from release.commands import DIST, StepFailed, artefacts, fresh, run, tools

LEVELS = {"x86_64": ("x86-64", "x86-64-v3", "x86-64-v4"), "aarch64": ("generic",)}


def export(folder: Path) -> Path:
    """Write the files of the last commit, and nothing else, into a folder."""
    run("git", "archive", "--output", folder / "source.tar", "HEAD")
    run("tar", "--extract", "--file", "source.tar", cwd=folder)
    (folder / "source.tar").unlink()
    return folder


def build_once(folder: Path) -> dict[str, Path]:
    """Build the sdist, and the wheel from the sdist; dates are those of the commit."""
    stamp = run("git", "log", "-1", "--format=%ct").strip()
    repository = os.environ.get("COBRE_REPOSITORY", "")
    run(
        tools() / "python", "-m", "build", "--no-isolation", cwd=folder,
        SOURCE_DATE_EPOCH=stamp, COBRE_REPOSITORY=repository,
    )  # fmt: skip
    return {path.name: path for path in sorted((folder / "dist").iterdir())}


def build() -> None:
    """Build twice, in folders of other names and under another umask; compare the bytes."""
    first = build_once(export(fresh("first")))
    usual = os.umask(0o077)
    try:
        second = build_once(export(fresh("the second one")))
    finally:
        os.umask(usual)
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir()
    for name, path in first.items():
        digests = [hashlib.sha256(one.read_bytes()).hexdigest() for one in (path, second[name])]
        if digests[0] != digests[1]:
            raise StepFailed(f"{name} differs: {digests}")
        shutil.copy(path, DIST)
        print(f"   {name}: {path.stat().st_size / 1000:.0f} kB, sha256 {digests[0]}")


def check_metadata() -> None:
    """Check both files with the tools of PyPI, and that PyPI can follow the README's links."""
    sdist, wheel = artefacts()
    print(run(tools() / "twine", "check", "--strict", sdist, wheel).strip())
    # W009 warns of several top-level packages; cobre_comm and cobre_kernels are both intended.
    print(run(tools() / "check-wheel-contents", "--ignore", "W009", wheel).strip())
    audited = " ".join(run(tools() / "auditwheel", "show", wheel).split())
    print(f"   {audited}")
    if "requires no external shared libraries" not in audited:
        raise StepFailed("the library of kernels should need no other library")
    with zipfile.ZipFile(wheel) as archive:
        _check_machine_code(archive)
        [metadata] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        text = archive.read(metadata).decode()
    addresses = re.findall(r"\]\(([^)]+)\)", text)
    broken = [address for address in addresses if not address.startswith(("https://", "#"))]
    if broken:
        raise StepFailed(f"PyPI cannot follow {broken}")


def _check_machine_code(wheel: zipfile.ZipFile) -> None:
    """Check that the wheel has code for each level of this instruction set, and no other code."""
    machine = platform.machine()
    wanted = {f"cobre_kernels/code/{level}.{machine}-linux.so" for level in LEVELS[machine]}
    files = {
        file.filename: file.file_size for file in wheel.infolist() if "/code/" in file.filename
    }
    if set(files) != wanted:
        raise StepFailed(f"the wheel should have {sorted(wanted)}, and has {sorted(files)}")
    for name, size in sorted(files.items()):
        print(f"   {name}: {size / 1000:.0f} kB")
