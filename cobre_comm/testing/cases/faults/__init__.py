"""What must come out when a rank is wrong, late or gone: an error on every rank, in time.

``survivors`` says what the other ranks must have met.
"""
