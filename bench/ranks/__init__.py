"""Programs of the ranks of a job, and the common parts of these programs.

Each program has a function `take`. `job` is the body that ranks run: it takes one measurement of a
program after the other.
"""
