"""Smaller models: weights that are zero, few values or signs, and fewer channels."""

from edgewise.compress.binarize import binarize
from edgewise.compress.cluster import cluster
from edgewise.compress.pack_binary import pack_binary
from edgewise.compress.prune import pack_sparse, prune

__all__ = ["binarize", "cluster", "pack_binary", "pack_sparse", "prune"]
