"""What every transport does while it waits."""
