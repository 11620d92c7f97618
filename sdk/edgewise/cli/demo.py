"""``edgewise demo``: a real network, from ONNX to answers and on to its users."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgewise.cli.options import Json
from edgewise.cli.output import progress, show_json, show_table
from edgewise.cli.siblings import FEDERATED, PERSONALIZED, loaded

if TYPE_CHECKING:  # --help imports no engine
    from edgewise.tools.demo import Digits


def demo(json: Json = False) -> None:
    """Convert, save, load, run and teach a network for digits, by one user and by many.

    Example: edgewise demo
    """
    from edgewise.tools.demo import digits

    with progress("reading handwritten digits", quiet=json):
        result = digits()
    with progress("learning the slanted digits of a user", quiet=json):
        learned = loaded(PERSONALIZED)()._asdict()
    with progress("learning from eight users, none of whom shows a digit", quiet=json):
        joined = loaded(FEDERATED)()._asdict()
    if json:
        parts = {"personalize": learned, "federate": joined}
        show_json({**result._asdict(), **parts})
        return
    _show(result)
    _show_learned(**learned)
    _show_joined(**joined)


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


def _show_joined(
    *,
    devices: int,
    examples: int,
    rounds: int,
    before: float,
    after: float,
    upload_bytes: int,
    download_bytes: int,
    seconds: float,
) -> None:
    from edgewise.tools.text import size_text, time_text

    show_table(
        ("together", "measured"),
        [
            ("devices, of one user each", str(devices)),
            ("digits that stay on them", str(examples)),
            ("slanted digits of others, before", f"{before:.2%}"),
            ("slanted digits of others, after", f"{after:.2%}"),
            ("sent by a device", size_text(upload_bytes)),
            ("sent to a device", size_text(download_bytes)),
        ],
        f"made everybody's: {rounds} federated rounds in {time_text(seconds)}",
    )
