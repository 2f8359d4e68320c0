"""The checkpoint of a training: a file that holds its policy, and from which it goes on.

Rank 0 writes and reads it. Nothing in it depends on ranks, so any number of them can go on from it.
"""
