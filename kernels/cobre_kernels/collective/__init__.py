"""The common part of all collectives: entries, calls, checks, statuses; folders for the rest."""
