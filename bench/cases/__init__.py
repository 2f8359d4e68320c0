"""The regular run: pytest modules, of which each benchmark is one side of one row of the report."""
