"""`python -m draftd` is `draftd`."""

from draftd.cli import main

if __name__ == "__main__":
    main()
