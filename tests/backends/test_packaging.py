"""environment.yml (conda) and pyproject.toml (pip) ask for the same things."""

import re
import tomllib
from pathlib import Path

import cobre_comm

ROOT = Path(__file__).parents[2]
CONDA_NAMES = {"matplotlib": "matplotlib-base"}
NOT_IN_CONDA = {"mpich>=5.0"}  # an environment of conda holds one MPI, the other one is in it


def normalised(requirement):
    return requirement.split(";")[0].replace(" ", "")


def test_conda_and_pip_ask_for_the_same():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    asked = {normalised(r) for group in groups for r in group if not r.startswith("cobre-comm[")}
    asked -= NOT_IN_CONDA
    asked = {re.sub(r"^[\w-]+", lambda m: CONDA_NAMES.get(m[0], m[0]), r) for r in asked}
    asked.add("python" + project["requires-python"])
    listed = {
        line.strip()[2:]
        for line in (ROOT / "environment.yml").read_text().splitlines()
        if re.match(r"^  - [\w-]+[<>=]", line)
    }
    assert listed == asked


def test_the_version_stands_once_in_each_place():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == cobre_comm.__version__
    assert f"## {cobre_comm.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_runtime_dependencies_are_three():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert sorted(re.match(r"[\w-]+", r)[0] for r in project["dependencies"]) == [
        "llvmlite",
        "numba",
        "numpy",
    ]
