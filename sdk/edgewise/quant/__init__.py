"""Quantisation: a model whose layers run over small numbers."""
