"""What numba makes of users' functions that take communicators and regions."""
