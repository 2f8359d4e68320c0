"""A linear program: its basis, the dual simplex, a primal one that mends, and checks.

It knows nothing of water. A program may gain and lose rows between two solves.
"""
