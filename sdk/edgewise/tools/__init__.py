"""Comparing, timing and describing models."""
