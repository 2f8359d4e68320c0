"""What must come out when a rank is late or gone: an error on every other rank, in time.

``survivors`` says what the other ranks must have met.
"""
