"""The dual simplex on a dense tableau, and a primal one that mends: state, pivots, solution, solve.

It knows nothing of water; a program may gain and lose rows between two solves.
"""
