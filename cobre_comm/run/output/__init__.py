"""The output of ranks: cut it into lines, relay it to the launcher's output and into files."""
