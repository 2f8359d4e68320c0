"""How a leader moves bytes over its links, waits for more, and learns that it waits in vain."""
