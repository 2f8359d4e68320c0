"""Which ranks of a tcp job share memory, found by trying.

``offer.py`` is the file that a rank offers, ``finding.py`` the search of all ranks. Neither knows a
socket.
"""
