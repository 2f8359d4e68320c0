"""What all collectives share: entries, calls, checks, statuses, and folders with the rest."""
