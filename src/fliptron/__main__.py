"""`python -m fliptron`."""

from fliptron.cli import main

main()
