"""Which native function serves which op; pure Python."""
