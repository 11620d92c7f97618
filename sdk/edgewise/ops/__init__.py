"""What ops mean: one class each, one family a file, imported when first asked for.

``from edgewise.ops import Relu`` and ``OPS["relu"]`` both import the family.
"""

from __future__ import annotations

from edgewise.ir.op import OPS, Op

_FAMILIES = {
    "unary": (
        "neg abs sign sqrt reciprocal exp log sin cos tan asin acos atan sinh cosh "
        "asinh acosh atanh erf floor ceil round not bitwise_not isnan isinf"
    ),
    "binary": "add sub mul div pow mod minimum maximum",
    "logic": (
        "and or xor equal less less_equal greater greater_equal bitwise_and "
        "bitwise_or bitwise_xor shift_left shift_right"
    ),
    "choose": "where cast clip",
    "activation": (
        "relu leaky_relu elu selu celu sigmoid hard_sigmoid hard_swish silu tanh "
        "gelu softplus softsign mish thresholded_relu prelu"
    ),
    "activation_grad": "activation_grad",
    "softmax": "softmax log_softmax",
    "attention": "attention",
    "matmul": "matmul linear",
    "conv": "conv depthwise_conv",
    "bottleneck": "bottleneck",
    "pool": "max_pool average_pool",
    "linear_grad": "linear_input_grad linear_weight_grad",
    "conv_grad": (
        "conv_input_grad conv_weight_grad depthwise_input_grad depthwise_weight_grad"
    ),
    "pool_grad": "max_pool_grad average_pool_grad",
    "norm": "layer_norm rms_norm batch_norm batch_norm_fold scale_shift",
    "statistics": "batch_statistics",
    "batch_norm_train": "batch_norm_train batch_norm_train_grad",
    "update": "sgd_update adam_update",
    "image_norm": "instance_norm group_norm lrn",
    "reduce": (
        "reduce_sum reduce_mean reduce_max reduce_min reduce_prod reduce_l1 "
        "reduce_l2 reduce_log_sum reduce_log_sum_exp reduce_sum_square"
    ),
    "order": "argmax argmin cumsum cumprod top_k",
    "shape": "reshape transpose concat slice expand tile",
    "pad": "pad",
    "index": "gather gather_elements gather_nd one_hot triangle",
    "scatter": "scatter_elements scatter_nd",
    "create": "fill arange dim_value",
    "recurrent": "gru lstm rnn",
    "recurrent_grad": "gru_grad lstm_grad rnn_grad",
    "resize_grad": "resize_grad",
    "rest_grad": "cumprod_grad det_grad",
    "pack": "pack_panels pack_quads pack_taps",
    "pack_narrow": "pack_narrow pack_halves widen_panels",
    "narrow": "narrow_linear narrow_conv",
    "bit_products": "sign_bits bit_linear bit_conv",
    "byte_products": "byte_linear byte_conv byte_depthwise_conv",
    "byte_between": "byte_table byte_add byte_mul byte_mean byte_average_pool",
    "quantize": "quantize dequantize byte_planes",
    "bits": "bit_cast",
    "linalg": "det",
    "random": "random_uniform random_normal",
    "select": "unique non_max_suppression",
    "signal": "dft mel_weights",
    "integer": "matmul_integer conv_integer requantize",
    "image_pool": "max_pool_places",
    "fold": "fold_columns",
    "resize": "resize",
    "grid": "grid_sample affine_grid",
    "region": "roi_align max_roi_pool",
    "deform": "deform_conv",
    "bindings": "read_dims",
    "after": "after",
    "straight": "straight_through",
    "numerals": "format_number parse_number",
    "text": "string_concat string_split string_normalize regex_full_match",
    "ngrams": "count_ngrams",
    "lookup": "look_up one_of",
    "trees": "trees",
    "dynamic": "non_zero permute",
    "control": "if loop scan",
    "expect": "expect",
    "sequence": (
        "sequence_construct sequence_empty sequence_insert sequence_erase sequence_at "
        "sequence_length split_to_sequence concat_from_sequence"
    ),
    "optional": "optional optional_has_element optional_get_element",
}
_NAMES: dict[str, str] = {}
for _family, _ops in _FAMILIES.items():
    for _name in _ops.split():
        OPS.homes.setdefault(_name, f"{__name__}.{_family}")
        _NAMES["".join(part.capitalize() for part in _name.split("_"))] = _name
_NAMES["MatMul"] = _NAMES.pop("Matmul")


def __getattr__(name: str) -> type[Op]:
    if name not in _NAMES:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    return OPS[_NAMES[name]]


def __dir__() -> list[str]:
    return sorted(_NAMES)
