"""Collectives between nodes made of namespaces, joined by cables of a known rate."""
