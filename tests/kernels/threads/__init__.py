"""Runs the kernels as plain Python on threads and looks for races by their orderings alone.

``recorder`` notes every access, ``races`` judges the accesses, ``trace`` runs the scenarios.
"""
