"""From results to pages: `python -m bench.report` writes REPORT.md, its plots, tables of docs."""
