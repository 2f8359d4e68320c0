"""Compiled code of other sources is forgotten."""

from compiled import forget_stale_code


def test_changed_sources_empty_the_cache(tmp_path):
    source = tmp_path / "lp.py"
    source.write_text("x = 1")
    assert not forget_stale_code(tmp_path)
    cached = tmp_path / "__pycache__" / "trainer.train-1.py311.nbi"
    cached.write_bytes(b"code")
    assert not forget_stale_code(tmp_path)
    assert cached.exists()
    source.write_text("x = 2")
    assert forget_stale_code(tmp_path)
    assert not cached.exists()
    assert not forget_stale_code(tmp_path)
