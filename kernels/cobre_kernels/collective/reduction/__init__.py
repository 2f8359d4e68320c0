"""The arithmetic of reductions: the fold of each operation, and the exact sum."""
