"""``cobre-comm check``: tests whether this machine computes the promised results.

``command`` reads the arguments. ``backends`` finds the backends that run here. ``plan`` lists the
checks for each backend and number of ranks, and ``runner`` runs them. ``table`` and ``document``
show the results.
"""
