"""What must come out when ranks call what is wrong, or what does not belong together."""
