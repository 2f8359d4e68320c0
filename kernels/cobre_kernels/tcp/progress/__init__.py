"""How a leader moves bytes over its links, and waits for more; ``control.py`` notices losses."""
