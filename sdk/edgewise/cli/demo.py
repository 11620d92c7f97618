"""``edgewise demo``: a real network, from ONNX to answers and on to its user."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgewise.cli.options import Json
from edgewise.cli.output import progress, show_json, show_table
from edgewise.cli.siblings import PERSONALIZED, loaded

if TYPE_CHECKING:  # --help imports no engine
    from edgewise.tools.demo import Digits


def demo(json: Json = False) -> None:
    """Convert, save, load, run and teach a network that reads handwritten digits.

    Example: edgewise demo
    """
    from edgewise.tools.demo import digits

    with progress("reading handwritten digits", quiet=json):
        result = digits()
    with progress("learning the slanted digits of a user", quiet=json):
        learned = loaded(PERSONALIZED)()._asdict()
    if json:
        show_json({**result._asdict(), "personalize": learned})
        return
    _show(result)
    _show_learned(**learned)


def _show(result: Digits) -> None:
    from edgewise.tools.text import size_text, time_text

    show_table(
        ("what", "measured"),
        [
            ("held-out digits", str(result.images)),
            ("read correctly", f"{result.accuracy:.2%}"),
            ("ONNX file", size_text(result.onnx_bytes)),
            (".ew file", size_text(result.file_bytes)),
            ("convert and save", time_text(result.convert_seconds)),
            ("load", time_text(result.load_seconds)),
            ("one digit, one thread", time_text(result.latency_seconds)),
            ("working memory", size_text(result.arena_bytes)),
            ("weights in memory", size_text(result.weights_bytes)),
        ],
        "handwritten digits",
    )


def _show_learned(
    *,
    examples: int,
    own_before: float,
    own_after: float,
    rest_before: float,
    rest_after: float,
    seconds: float,
) -> None:
    from edgewise.tools.text import time_text

    show_table(
        ("read correctly", "before", "after"),
        [
            ("slanted digits, the user's", f"{own_before:.2%}", f"{own_after:.2%}"),
            ("upright digits, as before", f"{rest_before:.2%}", f"{rest_after:.2%}"),
        ],
        f"made your own: {examples} digits learned in {time_text(seconds)}",
    )
