"""The compiled loop over all ranks: its forward and backward pass, its collectives, its memory."""
