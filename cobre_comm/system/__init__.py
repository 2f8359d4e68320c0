"""What the operating system offers: cores, control groups, clocks, files, streams."""
