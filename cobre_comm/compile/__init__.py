"""``cobre-comm compile``: a job then waits for no compilation of ours."""
