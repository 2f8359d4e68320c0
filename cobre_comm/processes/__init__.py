"""The engine of every launcher: ranks are started, heard, ended and judged in ``attempt.py``."""
