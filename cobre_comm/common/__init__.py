"""What any part may use: cores, messages over a pipe, agreements, objects that close."""
