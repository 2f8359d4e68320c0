"""What a program holds: the communicator, regions, work, and what belongs to them."""
