"""The checkpoint of a training: a file that has its policy, and from which it can continue.

Rank 0 writes and reads the file. The content of the file does not depend on ranks, so any number of
ranks can continue from it.
"""
