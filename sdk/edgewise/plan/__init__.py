"""From a graph with known sizes to steps and memory offsets."""
