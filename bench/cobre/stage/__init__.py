"""One stage problem solved by the SDDP example and by HiGHS from C: `make bench-stage`."""
