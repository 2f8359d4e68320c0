"""Ranks for tests: run a function on each, collect what became of it."""
