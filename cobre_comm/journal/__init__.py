"""Reads journals: the last calls of a rank, the rank that it waits for, and its statistics."""
