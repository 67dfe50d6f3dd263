"""`python -m snellen.testing`: the fake endpoint, by hand."""

from snellen.testing.server import main

main()
