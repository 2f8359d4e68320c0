"""Users' functions, compiled by numba, to which communicators and regions are passed."""
