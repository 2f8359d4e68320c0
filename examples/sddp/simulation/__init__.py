"""What a trained policy does: scenarios walked by all ranks, and statistics of what they cost."""
