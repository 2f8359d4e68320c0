"""What ranks write: cut into lines, put onto the launcher's own output, and into files."""
