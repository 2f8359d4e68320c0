"""Collectives over POSIX shared memory, one file each."""
