"""The recipe for conda: build it, and test the package in an environment of its own.

No channel on the network is used. The recipe needs packages that were installed from wheels of
PyPI, and this Python. ``channel.py`` makes a channel of these, in an environment that has rattler.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

from release.commands import ROOT, artefacts, build_requirements, environment, fresh, run

NEEDED = ("pip", "packaging")  # pip by the recipe's build, packaging by channel.py
RATTLER = ("py-rattler", "py-rattler-build")
TOLD = ("environment.yml: ", "built ", "tested ")  # lines of channel.py that are shown


def check_conda() -> None:
    """Build the sdist's recipe with rattler-build, and run the tests that the recipe names."""
    sdist, _ = artefacts()
    # The requirements of the build include all that the package needs to run.
    python = environment("conda-packages", *NEEDED, *build_requirements()) / "python"
    rattler = environment("conda-tools", *RATTLER) / "python"
    folder, script = fresh("conda"), Path(__file__).with_name("channel.py")
    (folder / "packages.json").write_text(run(python, script, "list"))
    (folder / "recipe.yaml").write_text(_recipe_of(sdist))
    said = run(rattler, script, "build", folder, sys.base_prefix, ROOT / "environment.yml")
    told = [line for line in said.splitlines() if line.startswith(TOLD)]
    print("\n".join(f"   {line}" for line in told))


def _recipe_of(sdist: Path) -> str:
    """Return the recipe with the address and the hash of a local sdist."""
    lines = (ROOT / "recipe" / "recipe.yaml").read_text().splitlines()
    digest = hashlib.sha256(sdist.read_bytes()).hexdigest()
    local = {"  url: ": f"  url: {sdist.as_uri()}", "  sha256: ": f"  sha256: {digest}"}
    for beginning, line in local.items():
        [number] = [n for n, each in enumerate(lines) if each.startswith(beginning)]
        lines[number] = line
    return "\n".join(lines) + "\n"
