"""Files of other tools, to and from runs."""
