"""R processes on one or many machines, over sockets.

``spec`` says what the backend is, ``meet`` how its ranks meet, ``backend`` has the communicator.
"""
