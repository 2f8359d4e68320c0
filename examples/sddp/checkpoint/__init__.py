"""The checkpoint of a training: a file that holds its policy, and from which it continues.

Rank 0 writes and reads it. It depends on no rank, so any number of ranks can continue from it.
"""
