"""Tables as data, and their text forms."""
