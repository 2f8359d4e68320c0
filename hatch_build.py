"""Metadata that depend on the repository from which a release is made: addresses and the README.

The release workflow sets ``COBRE_REPOSITORY``, such as ``https://github.com/OWNER/NAME``. Then the
README's relative links become whole addresses of the files of that version, and PyPI shows the
addresses of the project. Where it is not set, a relative link becomes its text and a picture goes,
because PyPI could not follow either.
"""

import os
import re
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface

RELATIVE = re.compile(r"(!?)\[([^]]*)\]\((?!https?:|#)([^)]+)\)")
PAGES = {
    "Source": "",
    "Documentation": "/blob/v{}/docs/index.md",
    "Changelog": "/blob/v{}/CHANGELOG.md",
    "Issues": "/issues",
}


class RepositoryMetadata(MetadataHookInterface):
    """Fills in ``readme`` and ``urls``."""

    def update(self, metadata: dict) -> None:
        """Add both to the table ``project``."""
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
