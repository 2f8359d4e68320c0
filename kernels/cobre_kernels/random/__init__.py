"""Random numbers by name: a counter goes through a bijection, and no state is kept."""
