"""The output of the programs: lines on a terminal, plots, tables, JSON files.

Only rank 0 has output.
"""
