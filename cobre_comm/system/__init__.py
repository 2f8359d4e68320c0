"""What the operating system says and lends: cores, control groups, clocks, files, streams."""
