"""Write the tables of ``operators.md`` and ``configuration.md`` from what there is.

    python docs/make_pages.py

Everything between the two marks of a page is replaced.  What runs by kernels is found
by converting and planning every one-node case of ONNX's own suite.
"""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import onnx
from onnx.backend.test.loader import load_model_tests

import edgewise as ew
from edgewise.convert import convert_module
from edgewise.convert.onnx_ops import importer_of, supported
from edgewise.errors import EdgewiseError
from edgewise.ir.binders import type_symbols
from edgewise.plan.flat import Flat
from edgewise.plan.plan import make_plan
from edgewise.plan.stages import cut
from edgewise_federated import Device, FederatedConfig, Privacy

DOCS = Path(__file__).parent
EXCLUSIONS = DOCS.parent / "tests" / "onnx_backend" / "exclusions.txt"
BEGIN, END = "<!-- made by make_pages.py -->", "<!-- made until here -->"
CONFIGURATIONS = (
    ew.ConvertConfig,
    ew.SessionConfig,
    FederatedConfig,
    Device,
    Privacy,
)
# What to do about the cases that are refused, by pattern.
WAYS_OUT = {
    "test_bernoulli.*": "`ConvertConfig(random=True)`, `edgewise convert --random`",
    "test_image_decoder_.*": "decode before the model, as with Pillow; feed the pixels",
    "test_gradient_of_.*": "export the network alone, without its training step",
}


class Known(NamedTuple):
    """An operator that can be imported, with the versions that changed it."""

    domain: str
    name: str
    versions: tuple[int, ...]
    composed: bool


def operators() -> list[Known]:
    """Everything that ``edgewise.convert`` takes."""
    names = set(supported())
    found: dict[tuple[str, str], list[int]] = {key: [] for key in names}
    composed: set[tuple[str, str]] = set()
    for schema in onnx.defs.get_all_schemas_with_history():
        key = schema.domain or "ai.onnx", schema.name
        body = schema.has_function or schema.has_context_dependent_function
        own = importer_of(schema.name, schema.since_version, schema.domain)
        if schema.deprecated or not (own or body):
            continue
        found.setdefault(key, []).append(schema.since_version)
        if not own:
            composed.add(key)
    return [
        Known(*key, tuple(sorted(versions)), key in composed - names)
        for key, versions in sorted(found.items())
    ]


def refused(names: Iterable[str]) -> Iterator[tuple[str, str, str]]:
    """Cases of the suite that are refused: name, reason, way out."""
    lines = [s for s in EXCLUSIONS.read_text().splitlines() if s and s[0] != "#"]
    everything = sorted(names)
    for line in lines:
        pattern, reason = (part.strip() for part in line.split("#"))
        for name in everything:
            if re.fullmatch(pattern, name):
                yield name, reason, WAYS_OUT[pattern]


def field_rows(config: type[Any]) -> list[tuple[str, str, str, str]]:
    """Name, type, default and meaning of every field of a configuration."""
    text = inspect.getdoc(config) or ""
    meanings = dict(re.findall(r"^    (\w+): (.*(?:\n     .*)*)", text, re.MULTILINE))
    return [
        (
            name,
            str(kind),
            _default(config, name),
            " ".join(meanings[name].split()).replace("``", "`"),
        )
        for name, kind in inspect.get_annotations(config).items()
    ]


def _default(config: type[Any], name: str) -> str:
    """What a field is if it is not given."""
    given = inspect.signature(config).parameters.get(name)
    if given is None:
        return repr(getattr(config(), name))
    return "must be given" if given.default is given.empty else repr(given.default)


def _by_kernels(model: onnx.ModelProto) -> bool:
    """Whether no reference runs in a model of one operator."""
    infer = convert_module(model).module.functions["infer"]
    for stage in cut(infer).stages:
        names = type_symbols([v.kind for v in infer.inputs]) | stage.symbols()
        plan = make_plan(Flat(stage.graph), dict.fromkeys(names, 1))
        if stage.actions or not all(segment.native for segment in plan.segments):
            return False
    return True


def _first_type(model: onnx.ModelProto) -> str:
    """Element type of the first input, as ONNX calls it."""
    if not model.graph.input:
        return "none"
    kind = model.graph.input[0].type
    form = kind.WhichOneof("value")
    if form != "tensor_type":
        return str(form).removesuffix("_type")
    return str(onnx.TensorProto.DataType.Name(kind.tensor_type.elem_type)).lower()


def who_runs(cases: Iterable[Any]) -> dict[tuple[str, str], tuple[set[str], set[str]]]:
    """Element types that kernels take, and those that references do, by operator."""
    found: dict[tuple[str, str], tuple[set[str], set[str]]] = {}
    for case in cases:
        model = case.model or onnx.load(Path(case.model_dir) / "model.onnx")
        if len(model.graph.node) != 1:
            continue
        (node,) = model.graph.node
        try:
            slow = not _by_kernels(model)
        except EdgewiseError:  # refused, or in need of sizes that only a run has
            continue
        key = node.domain or "ai.onnx", node.op_type
        found.setdefault(key, (set(), set()))[slow].add(_first_type(model))
    return found


def table(head: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> str:
    """A table in Markdown."""
    cells = [head, ("---",) * len(head), *rows]
    escaped = ([str(cell).replace("|", "\\|") for cell in row] for row in cells)
    return "\n".join(f"| {' | '.join(row)} |" for row in escaped)


def titles() -> Iterator[tuple[Known, str, str]]:
    """Every operator with the first two cells of its row."""
    for known in operators():
        domain = "" if known.domain == "ai.onnx" else f"{known.domain}."
        title = f"`{domain}{known.name}`" + " (by ONNX's own graph)" * known.composed
        yield known, title, ", ".join(map(str, known.versions)) or "1"


def operators_text() -> str:
    """The tables of ``operators.md``."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the expectations that the suite computes
        cases = load_model_tests(kind="node")
    runs = who_runs(cases)
    rows = []
    for known, title, versions in titles():
        sides = runs.get((known.domain, known.name))
        columns = [" ".join(sorted(side)) or "-" for side in sides or ()]
        if not columns:
            columns = ["not in ONNX's suite", ""]
        rows.append((title, versions, *columns))
    heads = "operator", "versions", "kernels take", "references do"
    gone = [(f"`{n}`", *rest) for n, *rest in refused(case.name for case in cases)]
    made = f"Found with onnx {onnx.__version__}."
    parts = [made, table(heads, rows), "## Cases that are refused"]
    return "\n\n".join([*parts, table(("case", "why", "way out"), gone)])


def configuration_text() -> str:
    """The tables of ``configuration.md``."""
    parts = []
    for config in CONFIGURATIONS:
        rows = [(f"`{n}`", f"`{t}`", f"`{d}`", m) for n, t, d, m in field_rows(config)]
        package = config.__module__.partition(".")[0]
        heads = "field", "type", "default", "meaning"
        parts += [f"## `{package}.{config.__name__}`", table(heads, rows)]
    return "\n\n".join(parts)


def write(name: str, text: str) -> None:
    """Replace what stands between the marks of a page."""
    path = DOCS / name
    before, _, rest = path.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    path.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    write("configuration.md", configuration_text())
    write("operators.md", operators_text())
