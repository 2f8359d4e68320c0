"""Cases of a late or lost rank: every other rank gets an error, in time.

``survivors`` checks the errors of the other ranks. ``struck`` strikes a rank at some random step:
``kinds`` has the faults, and ``judge`` checks what ranks are promised after each. The project's own
campaign has more faults, which concern no backend: of launchers, of full disks, of ranks that start
or end.
"""
