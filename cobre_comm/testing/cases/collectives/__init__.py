"""Each collective by itself, and what is made of one: reductions of numbers, moves of objects."""
