"""A linear program: its basis, the dual simplex, a primal simplex for repairs, and checks.

This package knows nothing about water. A program may gain and lose rows between two solves.
"""
