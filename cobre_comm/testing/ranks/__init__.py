"""Ranks for tests: run a function on each rank, and collect the outcomes."""
