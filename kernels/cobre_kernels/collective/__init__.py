"""What every collective shares on every backend: entries, calls, checks, folds, statuses."""
