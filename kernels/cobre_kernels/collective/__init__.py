"""The common part of all collectives: entries, calls, checks, statuses; wings for the rest."""
