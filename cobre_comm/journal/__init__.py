"""Reading journals: the last calls of a rank, whom it waits for, and what its time went into."""
