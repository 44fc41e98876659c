"""`python -m wavestitch`: the command line."""

from wavestitch.cli import main

main()
