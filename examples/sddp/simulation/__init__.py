"""Simulation of a trained policy: all ranks walk scenarios, then statistics of their costs."""
