"""``python -m edgewise``: the command."""

from edgewise.cli import main

if __name__ == "__main__":
    main()
