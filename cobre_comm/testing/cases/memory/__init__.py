"""Cases of shared regions, of outputs in regions, and of the end of regions and communicators."""
