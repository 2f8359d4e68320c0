"""Make a channel of conda from installed packages, and build the recipe from it; see ``conda.py``.

    python channel.py list                       the packages of this environment, as JSON
    python channel.py build FOLDER PREFIX ENV    FOLDER has packages.json and recipe.yaml

``list`` runs in an environment that has the packages, ``build`` in an environment with rattler.
"""

from __future__ import annotations

import asyncio
import json
import platform
import re
import sys
from pathlib import Path

PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
PLATFORM = {"x86_64": "linux-64", "aarch64": "linux-aarch64"}[platform.machine()]
SITE = f"lib/python{PYTHON}/site-packages"


def packages() -> list[dict[str, object]]:
    """Return name, version, dependencies and files of each package of this environment."""
    from importlib.metadata import distributions

    from packaging.requirements import Requirement

    found = []
    for package in distributions():
        asked = [Requirement(text) for text in package.requires or []]
        needed = [r for r in asked if r.marker is None or r.marker.evaluate({"extra": ""})]
        files = {
            str(file): str(package.locate_file(file))
            for file in package.files or []
            if not str(file).startswith("..") and not str(file).endswith(".pyc")
        }
        depends = [f"{r.name.lower()} {r.specifier}".strip() for r in needed]
        found.append(
            {
                "name": package.metadata["Name"].lower(),
                "version": package.version,
                "depends": [f"python {PYTHON}.*", *depends],
                "files": files,
            }
        )
    return found


def make_channel(channel: Path, listed: list[dict[str, object]], prefix: Path) -> None:
    """Write packages of conda, one of them Python itself, and the channel's index."""
    from rattler import index
    from rattler_build import FileEntry, assemble_package, collect_files

    folder = channel / PLATFORM
    folder.mkdir(parents=True)
    patterns = [f"bin/python{PYTHON}", "lib/libpython*", f"lib/python{PYTHON}/**"]
    left_out = [f"{SITE}/**", f"lib/python{PYTHON}/test/**", "**/__pycache__/**"]
    python = collect_files(prefix, include_globs=patterns, exclude_globs=left_out)
    program = prefix / "bin" / f"python{PYTHON}"
    python += [FileEntry.from_paths(program, f"bin/{name}") for name in ("python", "python3")]
    version = ".".join(map(str, sys.version_info[:3]))
    assemble_package(
        "python", version, PLATFORM, "0_cpython", folder, files=python, compression_level=1
    )
    for package in listed:
        files = [
            FileEntry.from_paths(source, f"{SITE}/{name}")
            for name, source in package["files"].items()  # type: ignore[attr-defined]
        ]
        assemble_package(
            package["name"], package["version"], PLATFORM, "py_0", folder,
            files=files, depends=package["depends"], compression_level=1,
        )  # fmt: skip
    asyncio.run(index.index_fs(channel))


def check_environment(path: Path) -> int:
    """Let rattler parse each package that an ``environment.yml`` asks for; return how many."""
    from rattler import MatchSpec

    asked = re.findall(r"^  - ([\w-]+(?:[<>=]\S+)?)$", path.read_text(), re.MULTILINE)
    return len([MatchSpec(each, strict=True) for each in asked if each != "conda-forge"])


def build(folder: Path, channel: Path) -> None:
    """Build the recipe, and run its tests in an environment that is solved from the channel."""
    from rattler_build import Package, Stage0Recipe, ToolConfiguration

    recipe = Stage0Recipe.from_file(folder / "recipe.yaml")
    tool = ToolConfiguration(test_strategy="skip")
    [built] = recipe.run_build(
        tool_config=tool, output_dir=folder / "output", channels=[channel.as_uri()]
    )
    [path] = built.packages
    print(f"built {Path(path).name}")
    package = Package.from_file(path)
    results = package.run_tests(channel=[channel.as_uri()])
    for result in results:
        print("tested" if result.success else "FAILED", result)
    if not results or not all(result.success for result in results):
        raise SystemExit(1)


if __name__ == "__main__":
    if sys.argv[1] == "list":
        print(json.dumps(packages()))
    else:
        folder, prefix, environment = map(Path, sys.argv[2:])
        print(f"environment.yml: {check_environment(environment)} packages, read by rattler")
        make_channel(folder / "channel", json.loads((folder / "packages.json").read_text()), prefix)
        build(folder, folder / "channel")
