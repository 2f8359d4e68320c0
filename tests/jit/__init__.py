"""Users' functions, as numba compiles them, with communicators and regions as arguments."""
