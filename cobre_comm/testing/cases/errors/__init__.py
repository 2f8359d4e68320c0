"""Cases of wrong calls, and of calls that do not match: every rank gets the right error."""
