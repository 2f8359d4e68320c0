"""Which ranks of a tcp job share memory, found by trying.

``offer.py`` is the file that a rank offers, ``finding.py`` the search of all ranks; ``group.py``
lets the ranks agree while they meet. None of it knows a socket.
"""
