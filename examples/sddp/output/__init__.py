"""What a training shows and writes: lines on a terminal, a plot, a JSON file.

Only rank 0 has output.
"""
