"""Cases of a late or lost rank: every other rank gets an error, in time.

``survivors`` checks the errors of the other ranks. ``struck`` strikes a rank amid random steps:
``kinds`` has the faults, ``judge`` what each promises. The project's own campaign has more faults,
which no backend has to know: of launchers, of full disks, of ranks that start or end.
"""
