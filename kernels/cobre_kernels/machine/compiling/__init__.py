"""How kernels are compiled and kept: the pipeline, the folder of the cache, lines for the user."""
