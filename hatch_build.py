"""Hooks of the build: addresses of the repository in a package's metadata, and machine code.

The release workflow sets ``COBRE_REPOSITORY``, such as ``https://github.com/OWNER/NAME``. Then the
README's relative links become whole addresses of the files of that version, and PyPI shows the
addresses of the project. If the variable is not set, a relative link becomes plain text and a
picture is left out, because PyPI could follow neither.

A wheel for Linux carries the machine code of the kernels, for each level of this machine's
instruction set (``cobre_kernels/machine/build.py``): shared libraries, or object files if there is
no linker. The same wheel serves every Python. An editable install carries no machine code, because
its sources change.
"""

import importlib.util
import os
import platform
import re
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import TextIO

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

RELATIVE = re.compile(r"(!?)\[([^]]*)\]\((?!https?:|#)([^)]+)\)")
PAGES = {
    "Source": "",
    "Documentation": "/blob/v{}/docs/index.md",
    "Changelog": "/blob/v{}/CHANGELOG.md",
    "Issues": "/issues",
}
# The glibc that a wheel needs. Machine code calls functions of the C library that this glibc has,
# and is linked with no library.
GLIBC = "manylinux_2_17"
MACHINES = ("x86_64", "aarch64")


class RepositoryMetadata(MetadataHookInterface):
    """Fills in ``readme`` and ``urls`` of the metadata."""

    def update(self, metadata: dict) -> None:
        """Add ``readme`` and ``urls`` to the table ``project``."""
        repository = os.environ.get("COBRE_REPOSITORY", "").rstrip("/")
        version = metadata["version"]

        def whole(link: re.Match) -> str:
            mark, text, path = link.groups()
            if not repository:
                return "" if mark else text
            kind = "raw" if mark else "blob"
            return f"{mark}[{text}]({repository}/{kind}/v{version}/{path})"

        text = RELATIVE.sub(whole, Path(self.root, "README.md").read_text(encoding="utf-8"))
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
        pages = {name: repository + path.format(version) for name, path in PAGES.items()}
        metadata["urls"] = pages if repository else {}


class MachineCode(BuildHookInterface):
    """Has the kernels compiled, and puts the files into the wheel."""

    def initialize(self, version: str, build_data: dict) -> None:
        """Make the files, name them for the wheel, and set the tag of a wheel with machine code."""
        if version == "editable":
            return
        if reason := _missing():
            self.app.display_warning(f"a wheel without machine code: {reason}")
            return
        sys.path.insert(0, str(Path(self.root, "kernels")))
        from cobre_kernels.machine import build, target

        self.folder = tempfile.TemporaryDirectory()
        with _terminal() as terminal:
            wanted = list(target.LEVELS[target.machine()])
            build.build(wanted, self.folder.name, tell=partial(print, file=terminal, flush=True))
        files = sorted(Path(self.folder.name).iterdir())
        libraries = [path for path in files if path.suffix == target.LIBRARY]
        if not libraries:
            self.app.display_warning(
                "a wheel with object files: no linker has made libraries of them"
            )
        for path in libraries or files:
            build_data["force_include"][str(path)] = f"cobre_kernels/code/{path.name}"
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{GLIBC}_{target.machine()}"

    def finalize(self, version: str, build_data: dict, artifact_path: str) -> None:
        """Delete the files, because the wheel contains them now."""
        if hasattr(self, "folder"):
            self.folder.cleanup()


def _terminal() -> TextIO:
    """Return the terminal, because this build takes long, and pip hides what a build writes."""
    try:
        return open("/dev/tty", "w")  # noqa: PTH123
    except OSError:
        return os.fdopen(os.dup(2), "w")


def _missing() -> str:
    """Return why no machine code can be made here, or ""."""
    if sys.platform != "linux" or platform.libc_ver()[0] != "glibc":
        return "it is made for Linux with glibc only"
    if platform.machine() not in MACHINES:
        return f"it is made for {' and '.join(MACHINES)} only"
    if importlib.util.find_spec("numba") is None:
        return "numba, which makes it, is not installed"
    return ""
