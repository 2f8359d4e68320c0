"""`make quick` finds faults of five kinds, each planted in a copy of this repository."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

from tests.planted.running import load_faults

COPIED = ("cobre_comm", "kernels", "tests", "docs", "examples", "pyproject.toml", "README.md")
ROOT = pathlib.Path(__file__).parents[2]
LIMIT_S = 600
faults = load_faults()
FAULTS = faults.REPOSITORY_FAULTS


@pytest.mark.slow
@pytest.mark.timeout(LIMIT_S + 60)
@pytest.mark.parametrize("name", FAULTS)
def test_quick_run_finds(name, tmp_path):
    """The run stops at its first failure, so that it costs less than a whole run."""
    for part in COPIED:
        copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy2
        copy(ROOT / part, tmp_path / part)
    changed = tmp_path / FAULTS[name].path
    changed.write_text(faults.patched(changed.read_text(), FAULTS[name].hunks))
    path = os.pathsep.join([str(tmp_path), str(tmp_path / "kernels")])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-m", "quick", "-p", "no:cacheprovider"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True,
        timeout=LIMIT_S,
    )  # fmt: skip
    assert done.returncode == 1, f"{FAULTS[name].story}\n{done.stdout[-2000:]}"
    assert "1 failed" in done.stdout or "1 error" in done.stdout, done.stdout[-2000:]
