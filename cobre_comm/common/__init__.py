"""Small tools for any part: cores, messages over a pipe, agreements, objects that close."""
