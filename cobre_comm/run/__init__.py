"""``cobre-comm run``: ranks of a script or module, their output relayed, one report at the end."""
