"""The model file: writing, reading, checking."""
