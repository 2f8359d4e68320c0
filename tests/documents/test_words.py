"""The documents have at most `MOST_WORDS` words of prose, so what is said twice has to go.

Prose is all of a page but fenced blocks, and the parts that a program fills, which stand between
`<!-- NAME -->` and `<!-- end -->`, or `<!-- NAME begins -->` and `<!-- NAME ends -->`.
"""

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
MOST_WORDS = 66_000
NO_PROSE = re.compile(r"<!-- .*?<!-- (?:[\w-]+ )?ends? -->|^```.*?^```", re.DOTALL | re.MULTILINE)
LEFT_OUT = ("changelog.md",)  # it includes CHANGELOG.md


def words_of(text):
    return len(NO_PROSE.sub("\n", text).split())


def test_the_documents_are_short():
    pages = {
        str(page.relative_to(DOCS)): words_of(page.read_text())
        for page in DOCS.rglob("*.md")
        if page.name not in LEFT_OUT
    }
    longest = sorted(pages, key=pages.get, reverse=True)[:10]
    assert sum(pages.values()) <= MOST_WORDS, {page: pages[page] for page in longest}


def test_what_is_no_prose_is_not_counted():
    fence = "```python\nx = 1\n```\n"
    table = "<!-- table growth -->\n| a | b |\n<!-- end -->\n"
    place = "<!-- slurm begins -->\n| c |\n<!-- slurm ends -->\n"
    assert words_of(f"One two.\n\n{fence}\nThree {table} four\n{place}five.\n") == 5
