"""`python -m hookline.cli`."""

from . import main

main()
