"""Measurements behind single decisions of the design, run by hand: `python -m bench.studies NAME`.

Each prints a table. Two are modules of pytest, and their figures are recorded as others are:
`make bench-growth`, `make bench-hosts` and `make bench-lanes`.
"""
