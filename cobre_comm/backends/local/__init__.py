"""One process: identity copies, no-ops and heap regions. Always available.

``spec`` says what the backend is, ``backend`` has the communicator.
"""
