"""Compiled code of other sources is forgotten."""

from compiled import forget_stale_code


def test_changed_sources_empty_the_cache(tmp_path):
    folder = tmp_path / "simplex"
    folder.mkdir()
    source = folder / "solve.py"
    source.write_text("x = 1")
    assert not forget_stale_code(tmp_path)
    cached = folder / "__pycache__" / "solve.reoptimise-1.py311.nbi"
    cached.parent.mkdir()
    cached.write_bytes(b"code")
    assert not forget_stale_code(tmp_path)
    assert cached.exists()
    source.write_text("x = 2")
    assert forget_stale_code(tmp_path)
    assert not cached.exists()
    assert not forget_stale_code(tmp_path)
