"""Each collective by itself, and calls that use collectives: sums of numbers, moves of objects."""
