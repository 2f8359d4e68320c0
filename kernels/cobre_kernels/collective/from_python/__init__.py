"""A call in Python reaches its entry through compiled code that reads CPython's own objects."""
