"""Programs of the ranks of a job, each with a function `take`, and their common parts.

`job` is the body that ranks run; it takes one measurement after the other from a program.
"""
