"""Shared regions, outputs in them, and what is left when they and communicators are gone."""
