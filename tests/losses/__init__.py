"""Trainings of the example that lose ranks at random moments: ``python -m tests.losses``."""
