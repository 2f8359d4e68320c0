"""R processes on one machine, over POSIX shared memory.

``spec`` says what the backend is. ``backend`` has the communicator, and the code by which its ranks
meet.
"""
