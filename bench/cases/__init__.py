"""The regular run: pytest modules. Each benchmark is one side of one row of the report."""
