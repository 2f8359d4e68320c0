"""The process engine: start a rank, watch it, hear how it ended, end it, clean up."""
