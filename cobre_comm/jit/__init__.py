"""The communicator in ``@njit`` code.

``types`` tells numba what a communicator and a region are, ``methods`` what they can do there,
``arguments`` what may be passed to them.
"""
