"""What must come out when a rank is late or gone: an error on every other rank, in time.

``survivors`` says what the other ranks must have met. ``struck`` strikes a rank amid random steps:
``kinds`` has the faults, ``judge`` what each promises. The project's own campaign has more of them,
which no backend has to know: of launchers, of full disks, of ranks that start or end.
"""
