"""``cobre-comm run``: the options, output, signals and machines of a job that runs a command.

The engine of all launchers starts the ranks (``cobre_comm.processes``).
"""
