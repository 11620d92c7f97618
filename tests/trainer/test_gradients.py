"""Every gradient against finite differences, over the samples of its op."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable

import pytest

import edgewise_trainer.autodiff
from edgewise.errors import TrainabilityError
from edgewise.ir.op import OPS
from edgewise_trainer.autodiff import has_gradient
from edgewise_trainer.autodiff.rule import rules

SAMPLED = [name for name in OPS if any(True for _ in OPS[name].samples())]
# A rounded number has the gradient of another: no limit of its own differences.
WITH_GRADIENT = [
    name for name in SAMPLED if has_gradient(OPS[name]) and name != "straight_through"
]
# Forms that are refused by name, by the value of their last attribute.
REFUSED = {
    "scatter_elements": {"mul", "min", "max"},
    "scatter_nd": {"mul", "min", "max"},
    "dequantize": {2, 3},  # elements that share a scale
    "max_pool_places": {True},  # they are counted by columns
}
# What is not on the list has a rule; what has none is refused by name.
WITHOUT = {
    "leaves end the way back": "input variable constant",
    "they jump": """
        sign sign_bits floor ceil round isnan isinf argmax argmin quantize byte_planes
        equal less less_equal greater greater_equal""",
    "they take no real numbers": """
        not and or xor bitwise_not bitwise_and bitwise_or bitwise_xor shift_left
        shift_right matmul_integer conv_integer requantize arange dim_value read_dims
        format_number parse_number string_concat string_split string_normalize
        regex_full_match count_ngrams look_up one_of random_uniform random_normal
        pack_quads byte_linear byte_conv byte_depthwise_conv byte_table byte_add
        byte_mul byte_mean byte_average_pool bit_linear bit_conv""",
    "they tell real numbers apart, or take their bits": """
        non_zero unique non_max_suppression trees bit_cast""",
    "they are steps of training, or made when that is planned": """
        activation_grad linear_input_grad linear_weight_grad conv_input_grad
        conv_weight_grad depthwise_input_grad depthwise_weight_grad max_pool_grad
        average_pool_grad batch_norm_train_grad gru_grad lstm_grad rnn_grad resize_grad
        cumprod_grad det_grad sgd_update adam_update bottleneck after""",
    "their weights are not trained: others are, with these widened": """
        pack_narrow pack_halves widen_panels narrow_linear narrow_conv""",
    "their bodies would have to be run backwards": "if loop scan",
    "they give objects, not tensors": """
        sequence_construct sequence_empty sequence_insert sequence_erase sequence_at
        sequence_length split_to_sequence concat_from_sequence optional
        optional_has_element optional_get_element""",
    "only a run knows the order of their axes": "permute",
    "they look at regions, as detectors do that are trained elsewhere": """
        roi_align max_roi_pool deform_conv grid_sample""",
    "their filters are made of a few numbers, once": "mel_weights",
}


@pytest.mark.parametrize("name", WITH_GRADIENT)
def test_a_gradient_is_the_limit_of_differences(
    name: str, check_gradient: Callable[..., int], differentiable: Callable[..., bool]
) -> None:
    compared, refused = 0, set()
    for sample in OPS[name].samples():
        if not differentiable(sample.op, sample.inputs):
            continue
        try:
            compared += check_gradient(sample.op, sample.inputs)
        except TrainabilityError:
            refused.add(sample.op.values[-1])
    assert compared > 0
    assert refused == REFUSED.get(name, set())


def test_every_op_without_a_gradient_has_a_reason() -> None:
    known = {name for names in WITHOUT.values() for name in names.split()}
    ours = {name for name in OPS if OPS[name].__module__.startswith("edgewise.")}
    assert {name for name in ours if not has_gradient(OPS[name])} == known


def test_a_rule_stands_where_it_is_looked_for() -> None:
    package = edgewise_trainer.autodiff
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
    assert rules()
    astray = {
        op.__name__
        for op, rule in rules().items()
        if op.__module__.split(".")[-1] != rule.__module__.split(".")[-1]
    }
    assert astray == set()
