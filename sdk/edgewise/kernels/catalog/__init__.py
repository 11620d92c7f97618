"""Which native kernels there are, and for which calls: pure Python, no numba."""
