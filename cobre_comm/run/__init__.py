"""``cobre-comm run``: the options, output, signals and machines of a job of a command.

Its ranks are started by the engine of every launcher (``cobre_comm.processes``).
"""
