"""The pages of the documentation say what there is."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import onnx
import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
REFRESH = "run: python docs/make_pages.py"


@pytest.fixture(scope="module")
def pages() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_pages", DOCS / "make_pages.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def operators() -> str:
    text = (DOCS / "operators.md").read_text()
    if f"onnx {onnx.__version__}." not in text:
        pytest.skip("the page was made with another version of onnx")
    return text


def links() -> Iterator[tuple[Path, str]]:
    for page in (*DOCS.rglob("*.md"), *ROOT.glob("*.md")):
        for target in re.findall(r"\]\(([^)#\s]+)", page.read_text()):
            if "://" not in target:
                yield page, target


def test_links_lead_somewhere() -> None:
    found = list(links())
    assert len(found) > 10
    lost = [(p.name, to) for p, to in found if not (p.parent / to).exists()]
    assert not lost


def test_every_page_is_in_the_menu() -> None:
    menu = (ROOT / "mkdocs.yml").read_text()
    paths = (str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md"))
    assert not [path for path in paths if path not in menu]


def test_every_field_of_a_configuration_is_explained(pages: ModuleType) -> None:
    page = (DOCS / "configuration.md").read_text()
    assert pages.configuration_text() in page, REFRESH


def test_every_operator_is_on_its_page(pages: ModuleType, operators: str) -> None:
    rows = [f"| {title} | {versions} |" for _, title, versions in pages.titles()]
    assert len(rows) > 200
    assert not [row for row in rows if row not in operators], REFRESH


def test_every_refusal_has_a_way_out(pages: ModuleType) -> None:
    lines = pages.EXCLUSIONS.read_text().splitlines()
    patterns = {s.split("#")[0].strip() for s in lines if s and s[0] != "#"}
    assert patterns == pages.WAYS_OUT.keys()


@pytest.mark.slow
def test_the_page_says_who_runs_what(pages: ModuleType, operators: str) -> None:
    assert pages.operators_text() in operators, REFRESH
