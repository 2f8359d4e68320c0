"""Cases of shared regions, of outputs in them, and of leaks after regions and communicators."""
