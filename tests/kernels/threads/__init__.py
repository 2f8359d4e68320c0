"""Runs the kernels as plain Python on threads, and looks for data races.

Accesses are judged by the memory orderings of the kernels' atomic operations alone, not by the
order in which the threads happened to run. ``recorder`` notes every access, ``races`` judges the
accesses, ``trace`` runs the scenarios.
"""
