"""The notes of a rank on its calls: the journal, which others read, and the trace."""
