"""Collectives of a single rank: identity copies and no-ops."""
