"""The dual simplex on a dense tableau: state of a program, tableau, pivots, solution, solve.

It knows nothing of water; a program may gain and lose rows between two solves.
"""
