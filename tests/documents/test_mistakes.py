"""The page of common mistakes: ranks run its examples, and raise the sentences that it quotes."""

import re
import sys
import traceback
from pathlib import Path

import numpy as np
import pytest
from numba import njit, prange

from cobre_comm import ReduceOp, launch, objects, random
from cobre_comm.common.mistakes import WORDS
from cobre_comm.explain import main
from cobre_comm.testing import run_ranks

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "mistakes.md"
LATE = "Two communicators in a different order"
OF_LAUNCH = "A function that launch cannot send"


def sections():
    """Return the title of each section with its programs, and the sentence that is quoted."""
    for part in re.split(r"^### ", PAGE.read_text(), flags=re.MULTILINE)[1:]:
        title = part.partition("\n")[0]
        blocks = re.findall(r"^```(\w+)\n(.*?)^```", part, flags=re.DOTALL | re.MULTILINE)
        programs = [text for kind, text in blocks if kind == "python"]
        said = [text.strip() for kind, text in blocks if kind == "text"]
        yield title, programs, said[0] if said else None


SECTIONS = list(sections())
PROGRAMS = [
    (program, said if number == 0 else None)
    for title, programs, said in SECTIONS
    for number, program in enumerate(programs)
    if title not in (LATE, OF_LAUNCH)
]


def lines_raised(comm, programs):
    """Run each program on a communicator of its own; return the lines of what it has raised."""
    raised = []
    for program in programs:
        names = {
            "np": np,
            "njit": njit,
            "prange": prange,
            "objects": objects,
            "random": random,
            "ReduceOp": ReduceOp,
        }
        names |= {"x": np.ones(3), "out": np.empty(3)}
        lines = []
        try:
            with comm.split(0) as names["comm"]:
                exec(program, names)
        except Exception as error:
            lines = "".join(traceback.format_exception_only(error)).splitlines()
        raised.append(lines)
        comm.barrier()
    return raised


def test_each_example_raises_its_sentence_and_each_cure_none():
    ranks = run_ranks("shm", 2, lines_raised, [program for program, _ in PROGRAMS])
    assert len(PROGRAMS) > 25
    for (program, said), *raised in zip(PROGRAMS, *ranks, strict=True):
        lines = [line for each in raised for line in each]
        assert (said in lines) if said else not lines, (program, lines)


def test_two_communicators_in_a_different_order():
    (program, *_), said = next((p, s) for title, p, s in SECTIONS if title == LATE)
    limit = {"COBRE_SHM_TIMEOUT_SECS": "5"}
    raised = run_ranks("shm", 2, lines_raised, [program], env=limit)
    # The rank whose time is up later may be told of the other one's error instead.
    said = said.replace("60 s", "5 s")
    late = [lines for (lines,) in raised if {said, said.replace("rank 1", "rank 0")} & {*lines}]
    assert late, raised
    for lines in late:
        assert re.search(r"in communicator \d+, of 2 ranks: #\d+ barrier\(\) ", lines[-1])


def test_a_function_that_launch_cannot_send(monkeypatch):
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    # The program of a worker of pytest has no file, as if it were interactive.
    monkeypatch.setattr(sys.modules["__main__"], "__file__", __file__, raising=False)
    (program,), said = next((p, s) for title, p, s in SECTIONS if title == OF_LAUNCH)
    with pytest.raises(ValueError, match="cannot import") as caught:
        exec(program, {"launch": launch, "__name__": "__main__"})
    assert f"ValueError: {caught.value}".startswith(said)
    assert caught.value.__notes__ == ["more: cobre-comm explain launch"]


@pytest.mark.parametrize("word", ["prange", "fence", "launcher", "Seeds", "as_slice", *WORDS])
def test_a_mistake_is_explained_by_a_word_of_its_title(word, capsys):
    assert main([word]) == 0
    title, _, text = capsys.readouterr().out.partition("\n\n")
    assert word in title
    for part in ("Symptom. ", "Cause. ", "Cure. "):
        assert part in text
    assert "`" * 3 not in text


def test_the_note_of_an_error_leads_to_its_section():
    """What a rank raises for an example says by which word that section is printed."""
    ranks = run_ranks("shm", 2, lines_raised, [program for program, _ in PROGRAMS])
    noted = {}
    for (program, said), *raised in zip(PROGRAMS, *ranks, strict=True):
        lines = [line for each in raised for line in each]
        if said and said.startswith(("TypeError: ", "ValueError: ")):
            noted[program] = {line for line in lines if line.startswith("more: ")}
    for title, programs, _ in SECTIONS:
        for (note,) in (noted[program] for program in programs if noted.get(program)):
            word = note.removeprefix("more: cobre-comm explain ")
            assert word.lower() in re.findall(r"\w+", title.lower()), (title, note)
    assert len([notes for notes in noted.values() if notes]) >= len(WORDS) - 2


def test_all_mistakes_are_listed(capsys):
    assert main([]) == 0
    listed = capsys.readouterr().out
    assert not [title for title, *_ in SECTIONS if title not in listed]
