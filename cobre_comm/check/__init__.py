"""``cobre-comm check``: a machine proves that it computes what is promised.

``command`` reads the arguments, ``backends`` finds what can run here, ``plan`` lists what is
checked on each backend and number of ranks, ``runner`` runs it, ``table`` and ``document`` tell.
"""
