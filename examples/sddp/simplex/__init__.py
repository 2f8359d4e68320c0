"""A linear program: its basis, the dual simplex, a primal simplex for repairs, and checks.

It knows nothing of water. A program may gain and lose rows between two solves.
"""
