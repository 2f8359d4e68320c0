"""Read journals: the last calls of a rank, the rank it waits for, and its statistics."""
