"""Kernel bodies in Numba; imported by the builder only."""
