"""What any part may use: cores, messages over a pipe, objects that close, one-line errors."""
