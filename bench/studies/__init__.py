"""Measurements behind single decisions of the design, run by hand: `python -m bench.studies NAME`.

Each study prints a table. Two studies are modules of pytest, and their figures are recorded like
those of the regular run: `make bench-growth`, `make bench-hosts` and `make bench-lanes`.
"""
