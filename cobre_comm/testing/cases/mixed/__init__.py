"""Sequences of many calls, of one collective or of all."""
