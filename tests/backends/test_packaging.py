"""environment.yml (conda) and pyproject.toml (pip) ask for the same things."""

import re
import tomllib
from pathlib import Path

import cobre_comm

ROOT = Path(__file__).parents[2]
CONDA_NAMES = {"matplotlib": "matplotlib-base"}
NOT_IN_CONDA = {"mpich>=5.0"}  # an environment of conda can hold one MPI, and ours has Open MPI


def normalised(requirement):
    return requirement.split(";")[0].replace(" ", "")


def test_conda_and_pip_ask_for_the_same():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    asked = {normalised(r) for group in groups for r in group if not r.startswith("cobre-comm[")}
    asked -= NOT_IN_CONDA
    asked = {re.sub(r"^[\w-]+", lambda m: CONDA_NAMES.get(m[0], m[0]), r) for r in asked}
    asked = {re.sub(r"\[\w+\]", "", r) for r in asked}  # conda has no extras
    asked.add("python" + project["requires-python"])
    listed = {
        line.strip()[2:]
        for line in (ROOT / "environment.yml").read_text().splitlines()
        if re.match(r"^  - [\w-]+[<>=]", line)
    }
    assert listed == asked


def test_the_recipe_asks_for_the_same():
    table = tomllib.loads((ROOT / "pyproject.toml").read_text())
    project = table["project"]
    recipe = (ROOT / "recipe" / "recipe.yaml").read_text()
    sections = dict(re.findall(r"^  (host|run|run_constraints):\n((?:    - .*\n)+)", recipe, re.M))
    asked = {
        name: {normalised(line) for line in found.split("    - ")[1:]}
        for name, found in sections.items()
    }
    asked = {name: {line.strip() for line in lines} for name, lines in asked.items()}
    python = "python" + project["requires-python"]
    assert asked["run"] == {python, *map(normalised, project["dependencies"])}
    assert asked["host"] == {python, "pip", *map(normalised, but_for_the_linker(table))}
    assert "  build:\n    - lld\n" in recipe  # conda's name for the linker
    assert asked["run_constraints"] == {*project["optional-dependencies"]["mpi"]}
    assert f"summary: {project['description']}\n" in recipe
    assert f"license: {project['license']}\n" in recipe


def test_what_makes_the_machine_code_has_the_bounds_of_what_runs_beside_it():
    table = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert but_for_the_linker(table)[1:] == table["project"]["dependencies"]


def but_for_the_linker(table):
    return [each for each in table["build-system"]["requires"] if not each.startswith("ziglang")]


def test_the_version_is_the_same_in_each_place():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    version = project["version"]
    assert version == cobre_comm.__version__
    assert f"## {version}" in (ROOT / "CHANGELOG.md").read_text()
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text()
    assert f'\n  version: "{version}"\n' in (ROOT / "recipe" / "recipe.yaml").read_text()


def test_runtime_dependencies_are_three():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert sorted(re.match(r"[\w-]+", r)[0] for r in project["dependencies"]) == [
        "llvmlite",
        "numba",
        "numpy",
    ]
