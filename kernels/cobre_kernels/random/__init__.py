"""Random numbers by name: a bijection of a counter, with no state that would have to be kept."""
