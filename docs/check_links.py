"""Check the links within a built site: that their files and anchors exist. Needs no network."""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class _Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.anchors, self.links = set(), set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name == "id" or (tag, name) == ("a", "name"):
                self.anchors.add(value)
            elif name in ("href", "src") and value:
                self.links.add(value)


def broken_links(site):
    """Return (page, link) of every link that leads nowhere, and the number of all links."""
    paths = [path for path in sorted(site.rglob("*.html")) if "_static" not in path.parts]
    pages = {path: _Page(path.read_text()) for path in paths}
    broken = []
    for path, page in pages.items():
        for link in sorted(page.links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            known = pages[target].anchors if target in pages else None
            anchor = unquote(parts.fragment)
            if not target.exists() or (anchor and known is not None and anchor not in known):
                broken.append((path.relative_to(site).as_posix(), link))
    return broken, sum(len(page.links) for page in pages.values())


def main():
    """Print what is broken; return 1 if anything is."""
    site = Path(sys.argv[1]).resolve()
    broken, total = broken_links(site)
    for page, link in broken:
        print(f"{page}: broken link: {link}", file=sys.stderr)
    print(f"{total} links, {len(broken)} broken")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
