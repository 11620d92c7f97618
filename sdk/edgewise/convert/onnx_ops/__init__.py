"""ONNX operators as compositions of our ops; one family a file."""
