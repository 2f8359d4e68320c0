"""The check finds a phrase in documents, docstrings and comments, and in nothing else."""

import importlib.util
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "docs" / "check_phrases.py"
PHRASES = [{"found": r"(?i)under way", "instead": "in progress"}]


def check_phrases():
    spec = importlib.util.spec_from_file_location("check_phrases", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_phrase_is_found_where_a_reader_meets_it(tmp_path):
    (tmp_path / "page.md").write_text("They go under\nway.\n```\nunder way\n```\n")
    (tmp_path / "one.py").write_text(
        '"""Under way, under way."""\nx = "under way"  # and under way\n'
    )
    (places,) = check_phrases().count(tmp_path, PHRASES)
    assert [len(each) for each in places.values()] == [1, 3]


def test_a_count_is_lowered_and_never_raised(tmp_path):
    module = check_phrases()
    found = [{"docs": ["one"], "code": ["one", "two"]}]
    text = module.written([{**PHRASES[0], "docs": 3, "code": 1}], found)
    assert "docs = 1\ncode = 1" in text
