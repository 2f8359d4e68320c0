"""``cobre-comm check``: shows that this machine computes the promised results.

``command`` reads the arguments, ``backends`` finds those that run here, ``plan`` lists what is
checked on each backend and number of ranks, ``runner`` runs it, ``table`` and ``document`` show it.
"""
