"""The output of ranks: cuts it into lines, relays it to the launcher's output and to files."""
