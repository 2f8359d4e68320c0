"""The kernels alone: their records, their compiled code, and the words that processes share.

``threads`` runs the kernels as plain Python, ``source`` reads their sources.
"""
