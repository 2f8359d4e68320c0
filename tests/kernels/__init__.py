"""The kernels alone: records, folds, what is compiled, and the words that processes share.

``ir`` reads the compiled code, ``threads`` runs the kernels as plain Python, ``source`` the text.
"""
