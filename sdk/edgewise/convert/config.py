"""How a model is converted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from edgewise.errors import ConfigError

MEBIBYTE = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertConfig:
    """What to do with a model on its way from ONNX; every pass has its switch.

    Attributes:
        input_shapes: Shapes that replace those of the file, by input name; a size is a
            whole number, or a name for one that only a run knows.
        random: Take operators that draw at random.  No two runtimes draw the same
            numbers, so a converted model cannot agree with the original.
        canonical: Remove what computes nothing, merge reshapes and transposes.
        fold: Compute what depends on constants only.
        fold_limit: Largest constant, in bytes, that folding may make.
        share: Compute equal nodes once.
        layout: Cancel transposes so that images stay channels-last.
        fuse: Recognise composed operators, fill the epilogues of products.
        lower: Store parameters packed; move what they alone decide into ``prepare``.
    """

    input_shapes: Mapping[str, tuple[int | str, ...]] | None = None
    random: bool = False
    canonical: bool = True
    fold: bool = True
    fold_limit: int = MEBIBYTE
    share: bool = True
    layout: bool = True
    fuse: bool = True
    lower: bool = True

    def __post_init__(self) -> None:
        if self.fold_limit < 0:
            raise ConfigError(f"fold_limit={self.fold_limit}: want 0 or more bytes")
        if not isinstance(self.input_shapes, Mapping | None):
            raise ConfigError(f"input_shapes={self.input_shapes!r}: want a mapping")
        for name, shape in (self.input_shapes or {}).items():
            if not isinstance(shape, tuple | list):
                raise ConfigError(f"input_shapes[{name!r}]={shape!r}: want a tuple")
            for size in shape:
                if isinstance(size, bool) or not isinstance(size, int | str):
                    raise ConfigError(
                        f"input_shapes[{name!r}] holds {size!r}: want ints or names"
                    )
                if isinstance(size, int) and size < 0:
                    raise ConfigError(
                        f"input_shapes[{name!r}] holds {size}: want 0 or more, or a"
                        " name for a size that only a run knows"
                    )
