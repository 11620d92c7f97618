"""Commands of the trainer: each in a file, imported when it is called."""
