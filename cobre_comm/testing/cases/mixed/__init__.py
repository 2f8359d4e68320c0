"""Many calls after one another, of one collective or of all."""
