"""From results to pages: `python -m bench.report` writes REPORT.md, its plots and the tables of docs."""
