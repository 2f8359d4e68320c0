"""The common part of all collectives: entries, calls, checks, folds, statuses."""
