"""R processes on one machine, over POSIX shared memory.

``spec`` says what the backend is, ``backend`` has the communicator, and how its ranks meet.
"""
