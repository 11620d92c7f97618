"""What the ops mean; one family a file."""
