"""``edgewise demo``: a real network, from ONNX to answers, as shipped."""

from __future__ import annotations

from edgewise.cli.options import Json
from edgewise.cli.output import progress, show_json, show_table


def demo(json: Json = False) -> None:
    """Convert, save, load and run a network that reads handwritten digits.

    Example: edgewise demo
    """
    from edgewise.tools.demo import digits
    from edgewise.tools.text import size_text, time_text

    with progress("reading handwritten digits", quiet=json):
        result = digits()
    if json:
        show_json(result._asdict())
        return
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
