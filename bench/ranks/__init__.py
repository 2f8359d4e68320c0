"""What the ranks of a job run: programs with a function `take`, and what those share.

`job` is the body that ranks start with; it asks a program for one measurement after the other.
"""
