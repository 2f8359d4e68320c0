"""Cases of shared regions, of outputs in regions, and of what regions and communicators leave."""
