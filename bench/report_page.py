"""The report as one HTML page: the Markdown, with the plots inside it and a list of contents."""

from __future__ import annotations

import itertools
import re
from html import escape
from pathlib import Path
from string import Template

from markdown_it import MarkdownIt
from report_style import GRID, INK, PAPER

PAGE = Template("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title>
<style>
:root { color-scheme: light dark; --ink: #1a1b1c; --paper: #fefefe; --soft: #f3f4f5;
  --line: #d9dadb; --bad: #b00000; --link: #0b57a4; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e5e6; --paper: #17191b; --soft: #212427;
  --line: #3a3d40; --bad: #ff7b72; --link: #79b8ff; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
h1, h2, h3 { line-height: 1.2; margin: 2em 0 .6em; } h1 { margin-top: 0; }
h2 { border-top: 1px solid var(--line); padding-top: 1em; }
a { color: var(--link); }
nav ul { list-style: none; padding: 0; columns: 16rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .88em; font-variant-numeric: tabular-nums; }
th, td { padding: .25em .7em; border-bottom: 1px solid var(--line); text-align: left;
  vertical-align: top; white-space: nowrap; }
th { background: var(--soft); white-space: normal; vertical-align: bottom; }
tbody tr:hover { background: var(--soft); }
table.head td { white-space: normal; overflow-wrap: anywhere; }
td strong, .loud { color: var(--bad); }
.loud { border: 2px solid; padding: .3em .6em; }
code { font: .92em ui-monospace, monospace; overflow-wrap: anywhere; }
pre { background: var(--soft); padding: .7em; overflow-x: auto; font-size: .82em; }
figure { margin: 1.5em 0; break-inside: avoid; }
figure svg { width: 100%; height: auto; color: var(--ink); }
figcaption { font-size: .88em; }
@media print { body { max-width: none; margin: 0; font-size: 10px; } .wide { overflow: visible; }
  pre { white-space: pre-wrap; } h2, h3 { break-after: avoid; } tr { break-inside: avoid; }
  nav { display: none; } th, td { padding: .15em .35em; } }
</style>
</head>
<body>
$body
</body>
</html>
""")


def page(markdown: str, folder: Path) -> str:
    """Return the page; images of the Markdown, SVG files in `folder`, become part of it."""
    parser = MarkdownIt("commonmark").enable("table")
    parser.add_render_rule("image", lambda _self, tokens, index, *_: _plot(tokens[index], folder))
    tokens = parser.parse(markdown)
    contents = _name_headings(tokens)
    _name_misses(tokens)
    body = parser.renderer.render(tokens, parser.options, {})
    body = re.sub(r"<p>(<figure>.*?</figure>)</p>", r"\1", body, flags=re.DOTALL)
    body = re.sub(r"<table>(?=\s*<thead>\s*<tr>\s*<th></th>\s*<th>this run)", TABLE_OF_HEAD, body)
    body = body.replace("<table", '<div class="wide"><table').replace("</table>", "</table></div>")
    body = re.sub(r"<p>(<strong>NO NOTE)", r'<p class="loud">\1', body)
    body = re.sub(r"\[(\d+)\](?=</td>)", r'<sup><a href="#miss-\1">\1</a></sup>', body)
    title = tokens[1].content
    links = "".join(f'<li><a href="#{slug}">{escape(text)}</a></li>' for slug, text in contents)
    first_end = body.index("</h1>") + len("</h1>")
    body = f"{body[:first_end]}\n<nav><ul>{links}</ul></nav>{body[first_end:]}"
    return PAGE.substitute(title=escape(title), body=body)


TABLE_OF_HEAD = '<table class="head">'


def _name_headings(tokens: list) -> list[tuple[str, str]]:
    """Give each heading an id; return those of the second level with their texts."""
    contents = []
    for token, inside in itertools.pairwise(tokens):
        if token.type == "heading_open":
            slug = re.sub(r"[^a-z0-9]+", "-", inside.content.lower()).strip("-")
            token.attrSet("id", slug)
            if token.tag == "h2":
                contents.append((slug, inside.content))
    return contents


def _name_misses(tokens: list) -> None:
    """Give the entries of the numbered list the ids that the cells link to."""
    for token in tokens:
        if token.type == "list_item_open" and token.info.isdigit():
            token.attrSet("id", f"miss-{token.info}")


def _plot(image, folder: Path) -> str:
    """Return the SVG, in the page's colours, with its caption."""
    svg = (folder / image.attrs["src"]).read_text()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    # Ids of one plot must not mean another's: all plots stand in one document.
    name = Path(image.attrs["src"]).stem
    svg = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", svg)
    for plain, themed in ((INK, "currentColor"), (GRID, "var(--line)"), (PAPER, "none")):
        svg = svg.replace(plain, themed)
    caption = escape(image.content)
    return f"<figure>{svg}<figcaption>{caption}</figcaption></figure>"
