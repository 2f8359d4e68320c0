"""R processes that MPI started: shared memory within a node, MPI between nodes.

``spec`` says what the backend is, ``meet`` how its ranks meet, ``backend`` has the communicator.
"""
