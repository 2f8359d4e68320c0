"""How this example's functions are compiled.

`_nrt=False` leaves reference counting out. These functions allocate nothing, they work on arrays
that the Python caller owns; yet with counting on, numba counts every array of every named tuple
that is passed or unpacked, and the counting is most of the code: compilation then takes five
times as long. Functions that call the communicator are compiled with it, since what they inline
is not ours; they get single arrays, no tuples.
"""

PLAIN = {"cache": True, "nogil": True, "error_model": "numpy", "_nrt": False}
"""Options of functions that only compute."""

CALLING = {"cache": True, "nogil": True, "_nrt": True}
"""Options of functions that call the communicator."""
