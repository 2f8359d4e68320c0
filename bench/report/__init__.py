"""Make pages of results: `python -m bench.report` writes REPORT.md, its plots, tables of docs."""
