"""The notes of a rank on its calls: the journal, which other processes read, and the trace."""
