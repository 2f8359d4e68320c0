"""The checkpoint of a training: a file that holds its policy, and from which it continues.

Rank 0 writes and reads the file. What the file holds does not depend on ranks, so any number of
ranks can continue from it.
"""
