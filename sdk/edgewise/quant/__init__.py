"""Post-training quantisation: a model whose layers run over small numbers."""

from edgewise.quant.config import QuantizeConfig
from edgewise.quant.quantize import quantize
from edgewise.quant.report import LayerReport, QuantizationReport

__all__ = ["LayerReport", "QuantizationReport", "QuantizeConfig", "quantize"]
