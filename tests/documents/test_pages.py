"""Pages show what other files have, as plain Markdown: `make pages` writes them anew."""

import re

import pytest

from docs import commands, refresh

DOCS = refresh.DOCS
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
FENCE = re.compile(r"^```\w+$.*?^```$", re.DOTALL | re.MULTILINE)
FOR_THE_SITE = re.compile(r"^(?:```|:::+) ?\{.*|\{[\w:]+\}`.*|\{\{.*", re.MULTILINE)


def programs_shown():
    """Return the files that pages show as programs, or of which they show the differences."""
    return {
        page.parent / name
        for page in refresh.PAGES
        for kind, words in re.findall(r"^<!-- (program|diff) (.+) -->$", page.read_text(), re.M)
        for name in (words.split() if kind == "diff" else words.split()[:1])
    }


@pytest.mark.parametrize("page", refresh.PAGES, ids=lambda page: page.name)
def test_a_page_shows_what_the_files_have(page):
    text = page.read_text()
    assert refresh.refreshed(page) == text, "make pages writes it anew"
    plain = FENCE.sub("", COMMENT.sub("", text))
    assert not FOR_THE_SITE.findall(plain), "a code host does not show this"


def test_every_program_and_every_drawing_is_on_a_page():
    programs = {
        path
        for folder in ("howto", "start", "tutorials")
        for path in (DOCS / folder).rglob("*")
        if path.suffix in refresh.LANGUAGES
    }
    assert programs_shown() == programs
    text = "".join(page.read_text() for page in refresh.PAGES)
    for path, drawn in refresh.drawings().items():
        assert path.read_text() == drawn, "make pages writes it anew"
        assert f"figures/{path.name})" in text


def test_a_part_that_differs_from_its_file_is_found():
    for name, there, planted in (
        ("howto/patterns.md", "comm.exact_sum(", "comm.exactsum("),
        ("tutorials/cut-pool.md", "def shared_mib(", "def shared("),
        ("tutorials/from-mpi4py.md", "+from cobre_comm", "-from cobre_comm"),
        ("reference/work.md", "`Work.claim()`", "`Work.claims()`"),
        ("design/records.md", "| offset |", "| offsets |"),
        ("benchmarks/tcp.md", "| 2 ranks, Open MPI", "| 3 ranks, Open MPI"),
    ):
        text = (DOCS / name).read_text()
        assert there in text, name
        assert refresh.refreshed(DOCS / name, text.replace(there, planted)) == text


@pytest.mark.parametrize(
    ("words", "shown", "made"),
    [
        ("", "$ echo b; echo a\na\nb", "$ echo b; echo a\na\nb"),  # in any order
        ("", "$ echo b\na", "$ echo b\nb"),
        (" last 1", "$ seq \\\n 3\n...\n4", "$ seq \\\n 3\n...\n3"),
        (" exit 3 changes", "$ date +%N; exit 3\n1", "$ date +%N; exit 3\n1"),
    ],
)
def test_an_output_that_a_page_does_not_show_is_found(tmp_path, words, shown, made):
    part = f"<!-- output{words} -->\n```console\n{{}}\n```\n<!-- end -->\n"
    found, _ = commands.rerun(tmp_path / "page.md", part.format(shown))
    assert found == part.format(made)
    with pytest.raises(SystemExit, match="exit status"):
        commands.rerun(tmp_path / "page.md", part.format("$ exit 4"))
