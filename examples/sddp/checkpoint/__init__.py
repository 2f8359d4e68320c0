"""The checkpoint of a training: a file from which it goes on, and which is its policy.

Rank 0 writes and reads it. It says nothing of ranks, so any number of them can go on from it.
"""
