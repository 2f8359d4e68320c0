"""R processes on one or many machines, over sockets.

``spec`` says what the backend is, ``backend`` has the communicator.
"""
