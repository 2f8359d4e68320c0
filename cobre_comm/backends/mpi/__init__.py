"""R processes that MPI started: shared memory within a node, MPI between nodes.

``spec`` says what the backend is, ``backend`` has the communicator.
"""
