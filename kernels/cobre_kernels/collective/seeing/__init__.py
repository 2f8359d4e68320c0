"""What a rank notes about its calls: the journal, which other processes read, and the trace."""
