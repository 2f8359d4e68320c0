"""The two files of a release: their bytes, their metadata, and the page that PyPI makes of them."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from pathlib import Path

from release.commands import DIST, ROOT, StepFailed, artefacts, fresh, run, tools


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
    """Let the tools of PyPI look at both files."""
    print(run(tools() / "twine", "check", "--strict", *artefacts()).strip())
    # W009: two packages, cobre_comm and cobre_kernels, are meant.
    print(run(tools() / "check-wheel-contents", "--ignore", "W009", artefacts()[1]).strip())


PAGE = """
import sys, email.parser, zipfile
from readme_renderer import markdown
with zipfile.ZipFile(sys.argv[1]) as wheel:
    name = next(n for n in wheel.namelist() if n.endswith(".dist-info/METADATA"))
    metadata = email.parser.Parser().parsestr(wheel.read(name).decode())
page = markdown.render(metadata.get_payload(), stream=sys.stderr)
print(page if page is not None else sys.exit("it cannot be rendered"))
"""


def check_readme() -> None:
    """Render the wheel's description as PyPI does; each address in it is a whole one."""
    page = run(tools() / "python", "-c", PAGE, artefacts()[1])
    addresses = re.findall(r'(?:href|src)="([^"]+)"', page)
    broken = [address for address in addresses if not address.startswith(("https://", "#"))]
    if broken:
        raise StepFailed(f"PyPI cannot follow {broken}")
    titles = re.findall(r"<h2.*?>(.+?)</h2>", page)
    if len(titles) != len(re.findall(r"^## ", (ROOT / "README.md").read_text(), re.MULTILINE)):
        raise StepFailed(f"sections are missing: {titles}")
    print(f"   {len(page)} characters of HTML, {len(titles)} sections, {len(addresses)} addresses")
