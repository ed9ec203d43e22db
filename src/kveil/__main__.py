"""`python -m kveil`: the command line, where `kveil` is not on the path."""

from kveil.cli.main import main

main()
