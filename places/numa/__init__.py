"""A virtual machine with several NUMA nodes, on which ranks are bound and pages are placed."""
