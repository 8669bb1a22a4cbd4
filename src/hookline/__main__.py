"""`python -m hookline`."""

from .cli import main

main()
