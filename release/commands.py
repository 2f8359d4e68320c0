"""The folders of a release, its programs, and the environments that they run in."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
BUILD = ROOT / "build" / "release"
DIST = ROOT / "dist"
TOOLS = ("auditwheel", "build", "check-wheel-contents", "twine")
TAG = f"py3-none-manylinux_2_17_{platform.machine()}"  # machine code for one instruction set
# Variables with these beginnings are not passed on to programs; a step sets its own.
DECIDED = ("COBRE_", "NUMBA_", "PYTHON", "PIP_CONSTRAINT", "XDG_CACHE_HOME")


class StepFailed(SystemExit):
    """A step of the release did not pass; the text says why."""


def project() -> dict[str, object]:
    """Return the table ``project`` of pyproject.toml."""
    table: dict[str, object] = _tables()["project"]
    return table


def build_requirements() -> list[str]:
    """Return the requirements that pyproject.toml has for a build."""
    asked: list[str] = _tables()["build-system"]["requires"]
    return asked


def _tables() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def fresh(name: str) -> Path:
    """Return an empty folder below ``BUILD``."""
    folder = BUILD / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def run(*words: object, cwd: Path = ROOT, **variables: str) -> str:
    """Run a program; return its output, or raise :class:`StepFailed` with its output."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(DECIDED)}
    done = subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env={**kept, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise StepFailed(f"{' '.join(map(str, words))}\n{done.stdout}\nfailed: {done.returncode}")
    return done.stdout


def environment(name: str, *requirements: object) -> Path:
    """Make a virtual environment, install the requirements, and return its folder of programs."""
    folder = fresh(name)
    run(sys.executable, "-m", "venv", folder)
    run(folder / "bin" / "python", "-m", "pip", "install", "--quiet", *requirements)
    return folder / "bin"


def tools() -> Path:
    """Return the folder of the programs that build and check; their environment is kept."""
    programs = BUILD / "tools" / "bin"
    if all((programs / name).exists() for name in ("auditwheel", "hatchling", "numba", "twine")):
        return programs
    return environment("tools", *TOOLS, *build_requirements())


def artefacts() -> tuple[Path, Path]:
    """Return the sdist and the wheel of this version."""
    version = project()["version"]
    sdist, wheel = (
        DIST / f"cobre_comm-{version}.tar.gz",
        DIST / f"cobre_comm-{version}-{TAG}.whl",
    )
    if not (sdist.exists() and wheel.exists()):
        raise StepFailed("build first: python -m release build")
    return sdist, wheel
