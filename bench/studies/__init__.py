"""Measurements behind single decisions of the design, run by hand: `python -m bench.studies NAME`.

Each prints a table; with `--record` its figures go to `bench/recorded`, from which pages show them.
"""
