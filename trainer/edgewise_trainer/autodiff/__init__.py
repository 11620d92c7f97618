"""Gradients of graphs, as graphs."""

from __future__ import annotations

from edgewise_trainer.autodiff.backward import backward
from edgewise_trainer.autodiff.rule import Adjoint, gradient, has_gradient

__all__ = ["Adjoint", "backward", "gradient", "has_gradient"]
