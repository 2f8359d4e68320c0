"""How a call in Python reaches an entry without any Python: what CPython and NumPy pass, read."""
