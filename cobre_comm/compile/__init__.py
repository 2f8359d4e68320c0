"""``cobre-comm compile``: make the machine code, so that no job waits for its compilation."""
