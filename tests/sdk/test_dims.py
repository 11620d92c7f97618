"""Sizes: arithmetic, normal form, binding, text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewise.dim_text import MAX_TEXT, parse
from edgewise.dims import (
    MAX_CALLS,
    MAX_TERMS,
    Dim,
    Expr,
    bind,
    ceildiv,
    floordiv,
    maximum,
    minimum,
    mod,
    product,
    symbol,
    symbols,
)
from edgewise.errors import ShapeError

N, T = symbol("N"), symbol("T")
VALUES = {"N": 7, "T": 12}

leaves: st.SearchStrategy[Dim] = st.one_of(
    st.integers(-20, 20), st.sampled_from([N, T])
)


def grow(inner: st.SearchStrategy[Dim]) -> st.SearchStrategy[Dim]:
    pair = st.tuples(inner, inner)
    positive = st.tuples(inner, st.integers(1, 9))
    return st.one_of(
        pair.map(lambda ab: ab[0] + ab[1]),
        pair.map(lambda ab: ab[0] - ab[1]),
        pair.map(lambda ab: ab[0] * ab[1]),
        positive.map(lambda ab: floordiv(*ab)),
        positive.map(lambda ab: mod(*ab)),
        pair.map(lambda ab: maximum(*ab)),
        pair.map(lambda ab: minimum(*ab)),
    )


dims = st.recursive(leaves, grow, max_leaves=4)


@given(dims)
def test_text_reads_back_as_the_same_size(dim: Dim) -> None:
    assert parse(str(dim)) == dim


@given(dims, dims)
def test_arithmetic_and_binding_commute(a: Dim, b: Dim) -> None:
    x, y = bind(a, VALUES), bind(b, VALUES)
    assert isinstance(x, int)
    assert isinstance(y, int)
    assert bind(a + b, VALUES) == x + y
    assert bind(a - b, VALUES) == x - y
    assert bind(a * b, VALUES) == x * y
    assert bind(maximum(a, b), VALUES) == max(x, y)
    assert bind(minimum(a, b), VALUES) == min(x, y)
    assert bind(floordiv(a, 3), VALUES) == x // 3
    assert bind(ceildiv(a, 3), VALUES) == -(-x // 3)
    assert bind(mod(a, 3), VALUES) == x % 3


@given(dims)
def test_symbols_are_those_that_binding_needs(dim: Dim) -> None:
    assert isinstance(bind(dim, dict.fromkeys(symbols(dim), 5)), int)


def test_equal_expressions_are_equal_values() -> None:
    assert 2 * N + N == 3 * N
    assert (N + 1) * (N - 1) == N * N - 1
    assert hash(N + T) == hash(T + N)
    assert N - N == 0
    assert N != T


def test_exact_quotients_lose_their_division() -> None:
    assert floordiv(6 * N * T, 2 * N) == 3 * T
    assert floordiv(N + T, N + T) == 1
    assert str(floordiv(N + 1, 2)) == "floordiv(N + 1, 2)"


def test_extremes_with_a_known_difference_are_plain() -> None:
    assert maximum(N, N + 1) == N + 1
    assert minimum(N, N + 1) == N
    assert isinstance(maximum(N, T), Expr)


def test_a_product_of_no_sizes_is_one() -> None:
    assert product(()) == 1
    assert product((2, N, 3)) == 6 * N


def test_division_by_zero_is_refused() -> None:
    with pytest.raises(ShapeError, match="zero"):
        floordiv(N, 0)


def test_a_size_may_be_called_like_a_word_of_python() -> None:
    for name in ("in", "class", "None", "True", "max", "_", "x1"):
        dim = 2 * symbol(name) + 1
        assert parse(str(dim)) == dim


@pytest.mark.parametrize("name", ["", "1a", "a b", "a-b", "é", "a.b"])
def test_other_texts_cannot_name_a_size(name: str) -> None:
    with pytest.raises(ShapeError, match="cannot name"):
        symbol(name)


@pytest.mark.parametrize(
    "text",
    [
        "", "1.5", "N +", "N ** 2", "N / 2", "f(N, 1)", "max(N)", "max(N, 1, 2)",
        "'N'", "(N, 1)", "N if T else 1", "N.real", "__import__('os')", "lambda: 1",
        "1_0", "max(N, b=1)", "N[0]", "\x00", "N;T", "(" * 500, "-" * 500 + "N",
    ],
)  # fmt: skip
def test_hostile_texts_are_no_sizes(text: str) -> None:
    with pytest.raises(ShapeError):
        parse(text)


def test_texts_and_polynomials_have_limits() -> None:
    with pytest.raises(ShapeError, match="longer"):
        parse("N" * (MAX_TEXT + 1))
    many: Dim = 0
    for index in range(MAX_TERMS):
        many = many + symbol(f"s{index}")
    with pytest.raises(ShapeError, match="terms"):
        _ = many + N


def test_products_of_too_many_symbols_are_refused() -> None:
    size: Dim = symbol("N")
    for _ in range(4):
        size = size * size
    with pytest.raises(ShapeError, match="multiplies more than"):
        _ = size * size


def test_operations_nested_too_deep_are_refused() -> None:
    size: Dim = symbol("N")
    for _ in range(MAX_CALLS):
        size = floordiv(size + 1, 2)
    with pytest.raises(ShapeError, match="nests more than"):
        floordiv(size + 1, 2)


def test_the_longest_sum_is_read_back() -> None:
    total = sum(symbol(f"s{index}") for index in range(MAX_TERMS))
    assert parse(str(total)) == total
