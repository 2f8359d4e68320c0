"""The kernels alone: records, what is compiled, and the words that processes share.

``threads`` runs the kernels as plain Python, ``source`` reads the text.
"""
