"""Cobre and the SDDP example, on the same cases: `make bench-cobre`."""
