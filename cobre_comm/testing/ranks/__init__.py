"""Ranks for tests: run a function on each, collect the outcomes."""
