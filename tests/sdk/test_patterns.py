"""Patterns of RE2, as onnxruntime matches them; refused where it refuses them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

from edgewise.errors import ConfigError, ShapeError
from edgewise.ops import automaton
from edgewise.ops.automaton import compiled

WORDS = (
    "|a|aa|aaa|A|b|ab|aB|abc|k|K|\u212a|s|\u017f|\n|a\n|a\nb|\t|\v|\f| |a b|1|_|-|z"
    "|\xe9|\xc9|\xdf|\u1e9e|\u03c3|\u03c2|\u0130|i|\u0131"
)
MORE = "{ a{,3} a{b} {2} a} ] ^ a.b axb \\ a-b | \0"
TEXTS = np.array([*WORDS.split("|"), *MORE.split(" ")], object)
MATCHED = r"""
[[:alpha:]]+   [[:^alpha:]]   [[:space:]]    [[:word:]]+
(?i)[[:lower:]]                (?i)[[:^lower:]]
a{,3}          a{b}           a{2,3}         a{2,}          a{0}           {
(?i)k          (?i)[k]        (?i)[^k]       (?i)S          (?i)\pL
               (?i)\w         (?i)\W         (?i)\p{Lu}     (?i:a)b        a(?i)b|c
\d+            \D+            \s             [\s]           \S+            \w+
\pL+           \PL            \p{^Lu}        [^\PL]         \p{Any}        \p{C}
\Qa.b\E        \x61           \x{61}         \141           \0             \v
(?U)a+         (?<n>a)        (?P<n>a)       a\z            \Aa            a??
(?s).          .              [^a]           ^^a            (?m)a$\n^b     ^*a
a\b.           a\Bb           \B             []a]           [^]a]          [a-]
[--a]          [a-b-c]+       [\d-z]         a\.b           \\             a|
(|a)           ()             (?)            (a+)+b         ((a|b)c?)+
"""
REFUSED = r"""
(a)\1  (?P=n)  (?<=a)  (?=a)   (?!a)  a++   (?>a)  \Z     \8     \q      a**    *a
(*a)   a|*     a{3,2}  a{1001} [z-a]  [a-\d] [     a)     (a     [[:foo:]] (?#c) \x4
(?z)a  (?i-)a  (?P<>a) a???    [\b]   \x{110000}   a{2}{3} (?i   \p{Cn}  [[:alpha:]
"""


def onnxruntime_finds(pattern: str) -> Any:
    node = helper.make_node("RegexFullMatch", ["x"], ["y"], pattern=pattern)
    x = helper.make_tensor_value_info("x", TensorProto.STRING, ["N"])
    y = helper.make_tensor_value_info("y", TensorProto.BOOL, ["N"])
    graph = helper.make_graph([node], "match", [x], [y])
    opsets = [helper.make_opsetid("", 20)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    return session.run(None, {"x": TEXTS})[0]


@pytest.mark.parametrize(
    "pattern", [*MATCHED.split(), "(?i)\xdf", "(?i)\u03c3", "(?i)\u0130"]
)
def test_a_pattern_matches_as_in_re2(pattern: str) -> None:
    matches: Callable[[str], bool] = compiled(pattern).matches
    found = [matches(text) for text in TEXTS]
    np.testing.assert_array_equal(found, onnxruntime_finds(pattern))


@pytest.mark.parametrize("pattern", REFUSED.split())
def test_what_re2_has_not_is_refused(pattern: str) -> None:
    with pytest.raises(ConfigError, match="want a pattern of RE2"):
        compiled(pattern)


@pytest.mark.parametrize("pattern", [r"\p{Greek}", r"\C"])
def test_what_is_not_here_is_refused(pattern: str) -> None:
    with pytest.raises(ConfigError, match="without names of scripts"):
        compiled(pattern)


@pytest.mark.parametrize("pattern", ["(a|a)*b", "(a+)+b", "(a?){60}a{60}b", "(.*)*b"])
def test_no_pattern_makes_a_text_take_long(pattern: str) -> None:
    start = time.process_time()
    assert not compiled(pattern).matches("a" * 20_000)
    assert time.process_time() - start < 5


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(automaton, "MAX_KEPT", 30)
    assert automaton.Automaton.matches(compiled("(a|b)*a(a|b){8}"), "ab" * 50 + "a" * 9)


@pytest.mark.parametrize("pattern", ["((a{100}){100}){100}", "(" * 999, "a" * 99_999])
def test_a_pattern_that_is_too_large_is_refused(pattern: str) -> None:
    with pytest.raises(ConfigError):
        compiled(pattern)


def test_a_text_that_leads_to_ever_new_states_ends_with_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(automaton, "MAX_FOUND", 9000)
    pattern = compiled("(a|b)*a(a|b){20}")
    with pytest.raises(ShapeError, match="shorter text"):
        pattern.matches(f"{3**2000:b}".replace("0", "a").replace("1", "b"))
    assert pattern.matches("a" * 21)
