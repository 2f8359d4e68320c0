"""Each collective by itself, and the calls that stand on one: scalars, objects."""
