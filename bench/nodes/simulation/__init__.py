"""Collectives between nodes, simulated message by message.

``events.py`` has time and processes, ``network.py`` cables and streams, ``cluster.py`` nodes and
the threads of their ranks. Upon these stand our engine (``choices.py``, ``verbs.py``, ``chain.py``,
``collectives.py``) and the algorithms of Open MPI and NCCL.
"""
