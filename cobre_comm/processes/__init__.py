"""The process engine: start ranks, watch them, take their reports, end them, clean up."""
