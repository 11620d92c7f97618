"""Linear layers over bytes: as over reals, four bytes a word.

Their reduction counts words of four bytes.  ``narrow``
kernels want weights of which two products fit 16 bits, ``paired`` ones of which four do
(``dot``).
"""

from __future__ import annotations

from edgewise.kernels.native.dot import NARROW, PAIRED, SIGNED, UNSIGNED
from edgewise.kernels.native.matmul import make_product
from edgewise.kernels.native.requantize import REQUANTIZED

KINDS = {"u8": UNSIGNED, "i8": SIGNED, "u8_narrow": NARROW, "u8_paired": PAIRED}

EXPORTS = {
    f"product_{name}": make_product(kind, REQUANTIZED) for name, kind in KINDS.items()
}
