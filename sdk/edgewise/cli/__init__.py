"""The command, one subcommand a file."""
