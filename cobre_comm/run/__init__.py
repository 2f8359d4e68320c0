"""``cobre-comm run``: start ranks of a script or module, relay their output, report the end."""
