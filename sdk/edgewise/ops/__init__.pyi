"""The op classes, for type checkers; ``__init__.py`` imports them on demand."""

from edgewise.ops.activation import (
    Celu,
    Elu,
    Gelu,
    HardSigmoid,
    HardSwish,
    LeakyRelu,
    Mish,
    Prelu,
    Relu,
    Selu,
    Sigmoid,
    Silu,
    Softplus,
    Softsign,
    Tanh,
    ThresholdedRelu,
)
from edgewise.ops.activation_grad import ActivationGrad
from edgewise.ops.after import (
    After,
)
from edgewise.ops.attention import (
    Attention,
)
from edgewise.ops.batch_norm_train import BatchNormTrain, BatchNormTrainGrad
from edgewise.ops.binary import (
    Add,
    Div,
    Maximum,
    Minimum,
    Mod,
    Mul,
    Pow,
    Sub,
)
from edgewise.ops.bindings import (
    ReadDims,
)
from edgewise.ops.bit_products import (
    BitConv,
    BitLinear,
    SignBits,
)
from edgewise.ops.bits import (
    BitCast,
)
from edgewise.ops.bottleneck import Bottleneck
from edgewise.ops.byte_between import (
    ByteAdd,
    ByteAveragePool,
    ByteMean,
    ByteMul,
    ByteTable,
)
from edgewise.ops.byte_products import (
    ByteConv,
    ByteDepthwiseConv,
    ByteLinear,
)
from edgewise.ops.choose import (
    Cast,
    Clip,
    Where,
)
from edgewise.ops.control import (
    If,
    Loop,
    Scan,
)
from edgewise.ops.conv import (
    Conv,
    DepthwiseConv,
)
from edgewise.ops.conv_grad import (
    ConvInputGrad,
    ConvWeightGrad,
    DepthwiseInputGrad,
    DepthwiseWeightGrad,
)
from edgewise.ops.create import (
    Arange,
    DimValue,
    Fill,
)
from edgewise.ops.deform import (
    DeformConv,
)
from edgewise.ops.dynamic import (
    NonZero,
    Permute,
)
from edgewise.ops.expect import (
    Expect,
)
from edgewise.ops.fold import (
    FoldColumns,
)
from edgewise.ops.grid import (
    AffineGrid,
    GridSample,
)
from edgewise.ops.image_norm import (
    GroupNorm,
    InstanceNorm,
    Lrn,
)
from edgewise.ops.image_pool import (
    MaxPoolPlaces,
)
from edgewise.ops.index import (
    Gather,
    GatherElements,
    GatherNd,
    OneHot,
    Triangle,
)
from edgewise.ops.integer import (
    ConvInteger,
    MatmulInteger,
    Requantize,
)
from edgewise.ops.linalg import (
    Det,
)
from edgewise.ops.linear_grad import LinearInputGrad, LinearWeightGrad
from edgewise.ops.logic import (
    And,
    BitwiseAnd,
    BitwiseOr,
    BitwiseXor,
    Equal,
    Greater,
    GreaterEqual,
    Less,
    LessEqual,
    Or,
    ShiftLeft,
    ShiftRight,
    Xor,
)
from edgewise.ops.lookup import (
    LookUp,
    OneOf,
)
from edgewise.ops.matmul import (
    Linear,
    MatMul,
)
from edgewise.ops.narrow import (
    NarrowConv,
    NarrowLinear,
)
from edgewise.ops.ngrams import (
    CountNgrams,
)
from edgewise.ops.norm import (
    BatchNorm,
    BatchNormFold,
    LayerNorm,
    RmsNorm,
    ScaleShift,
)
from edgewise.ops.numerals import (
    FormatNumber,
    ParseNumber,
)
from edgewise.ops.optional import (
    Optional,
    OptionalGetElement,
    OptionalHasElement,
)
from edgewise.ops.order import (
    Argmax,
    Argmin,
    Cumprod,
    Cumsum,
    TopK,
)
from edgewise.ops.pack import (
    PackPanels,
    PackQuads,
    PackTaps,
)
from edgewise.ops.pack_narrow import (
    PackHalves,
    PackNarrow,
    WidenPanels,
)
from edgewise.ops.pad import (
    Pad,
)
from edgewise.ops.pool import (
    AveragePool,
    MaxPool,
)
from edgewise.ops.pool_grad import AveragePoolGrad, MaxPoolGrad
from edgewise.ops.quantize import (
    BytePlanes,
    Dequantize,
    Quantize,
)
from edgewise.ops.random import (
    RandomNormal,
    RandomUniform,
)
from edgewise.ops.recurrent import (
    Gru,
    Lstm,
    Rnn,
)
from edgewise.ops.recurrent_grad import GruGrad, LstmGrad, RnnGrad
from edgewise.ops.reduce import (
    ReduceL1,
    ReduceL2,
    ReduceLogSum,
    ReduceLogSumExp,
    ReduceMax,
    ReduceMean,
    ReduceMin,
    ReduceProd,
    ReduceSum,
    ReduceSumSquare,
)
from edgewise.ops.region import (
    MaxRoiPool,
    RoiAlign,
)
from edgewise.ops.resize import (
    Resize,
)
from edgewise.ops.resize_grad import ResizeGrad
from edgewise.ops.rest_grad import CumprodGrad, DetGrad
from edgewise.ops.scatter import (
    ScatterElements,
    ScatterNd,
)
from edgewise.ops.select import (
    NonMaxSuppression,
    Unique,
)
from edgewise.ops.sequence import (
    ConcatFromSequence,
    SequenceAt,
    SequenceConstruct,
    SequenceEmpty,
    SequenceErase,
    SequenceInsert,
    SequenceLength,
    SplitToSequence,
)
from edgewise.ops.shape import (
    Concat,
    Expand,
    Reshape,
    Slice,
    Tile,
    Transpose,
)
from edgewise.ops.signal import (
    Dft,
    MelWeights,
)
from edgewise.ops.softmax import (
    LogSoftmax,
    Softmax,
)
from edgewise.ops.statistics import BatchStatistics
from edgewise.ops.straight import StraightThrough
from edgewise.ops.text import (
    RegexFullMatch,
    StringConcat,
    StringNormalize,
    StringSplit,
)
from edgewise.ops.trees import (
    Trees,
)
from edgewise.ops.unary import (
    Abs,
    Acos,
    Acosh,
    Asin,
    Asinh,
    Atan,
    Atanh,
    BitwiseNot,
    Ceil,
    Cos,
    Cosh,
    Erf,
    Exp,
    Floor,
    Isinf,
    Isnan,
    Log,
    Neg,
    Not,
    Reciprocal,
    Round,
    Sign,
    Sin,
    Sinh,
    Sqrt,
    Tan,
)
from edgewise.ops.update import AdamUpdate, SgdUpdate

__all__ = [
    "Abs",
    "Acos",
    "Acosh",
    "ActivationGrad",
    "AdamUpdate",
    "Add",
    "AffineGrid",
    "After",
    "And",
    "Arange",
    "Argmax",
    "Argmin",
    "Asin",
    "Asinh",
    "Atan",
    "Atanh",
    "Attention",
    "AveragePool",
    "AveragePoolGrad",
    "BatchNorm",
    "BatchNormFold",
    "BatchNormTrain",
    "BatchNormTrainGrad",
    "BatchStatistics",
    "BitCast",
    "BitConv",
    "BitLinear",
    "BitwiseAnd",
    "BitwiseNot",
    "BitwiseOr",
    "BitwiseXor",
    "Bottleneck",
    "ByteAdd",
    "ByteAveragePool",
    "ByteConv",
    "ByteDepthwiseConv",
    "ByteLinear",
    "ByteMean",
    "ByteMul",
    "BytePlanes",
    "ByteTable",
    "Cast",
    "Ceil",
    "Celu",
    "Clip",
    "Concat",
    "ConcatFromSequence",
    "Conv",
    "ConvInputGrad",
    "ConvInteger",
    "ConvWeightGrad",
    "Cos",
    "Cosh",
    "CountNgrams",
    "Cumprod",
    "CumprodGrad",
    "Cumsum",
    "DeformConv",
    "DepthwiseConv",
    "DepthwiseInputGrad",
    "DepthwiseWeightGrad",
    "Dequantize",
    "Det",
    "DetGrad",
    "Dft",
    "DimValue",
    "Div",
    "Elu",
    "Equal",
    "Erf",
    "Exp",
    "Expand",
    "Expect",
    "Fill",
    "Floor",
    "FoldColumns",
    "FormatNumber",
    "Gather",
    "GatherElements",
    "GatherNd",
    "Gelu",
    "Greater",
    "GreaterEqual",
    "GridSample",
    "GroupNorm",
    "Gru",
    "GruGrad",
    "HardSigmoid",
    "HardSwish",
    "If",
    "InstanceNorm",
    "Isinf",
    "Isnan",
    "LayerNorm",
    "LeakyRelu",
    "Less",
    "LessEqual",
    "Linear",
    "LinearInputGrad",
    "LinearWeightGrad",
    "Log",
    "LogSoftmax",
    "LookUp",
    "Loop",
    "Lrn",
    "Lstm",
    "LstmGrad",
    "MatMul",
    "MatmulInteger",
    "MaxPool",
    "MaxPoolGrad",
    "MaxPoolPlaces",
    "MaxRoiPool",
    "Maximum",
    "MelWeights",
    "Minimum",
    "Mish",
    "Mod",
    "Mul",
    "NarrowConv",
    "NarrowLinear",
    "Neg",
    "NonMaxSuppression",
    "NonZero",
    "Not",
    "OneHot",
    "OneOf",
    "Optional",
    "OptionalGetElement",
    "OptionalHasElement",
    "Or",
    "PackHalves",
    "PackNarrow",
    "PackPanels",
    "PackQuads",
    "PackTaps",
    "Pad",
    "ParseNumber",
    "Permute",
    "Pow",
    "Prelu",
    "Quantize",
    "RandomNormal",
    "RandomUniform",
    "ReadDims",
    "Reciprocal",
    "ReduceL1",
    "ReduceL2",
    "ReduceLogSum",
    "ReduceLogSumExp",
    "ReduceMax",
    "ReduceMean",
    "ReduceMin",
    "ReduceProd",
    "ReduceSum",
    "ReduceSumSquare",
    "RegexFullMatch",
    "Relu",
    "Requantize",
    "Reshape",
    "Resize",
    "ResizeGrad",
    "RmsNorm",
    "Rnn",
    "RnnGrad",
    "RoiAlign",
    "Round",
    "ScaleShift",
    "Scan",
    "ScatterElements",
    "ScatterNd",
    "Selu",
    "SequenceAt",
    "SequenceConstruct",
    "SequenceEmpty",
    "SequenceErase",
    "SequenceInsert",
    "SequenceLength",
    "SgdUpdate",
    "ShiftLeft",
    "ShiftRight",
    "Sigmoid",
    "Sign",
    "SignBits",
    "Silu",
    "Sin",
    "Sinh",
    "Slice",
    "Softmax",
    "Softplus",
    "Softsign",
    "SplitToSequence",
    "Sqrt",
    "StraightThrough",
    "StringConcat",
    "StringNormalize",
    "StringSplit",
    "Sub",
    "Tan",
    "Tanh",
    "ThresholdedRelu",
    "Tile",
    "TopK",
    "Transpose",
    "Trees",
    "Triangle",
    "Unique",
    "Where",
    "WidenPanels",
    "Xor",
]
