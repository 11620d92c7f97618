"""Run any ONNX model on an edge device, and keep it learning there."""
