"""The fake endpoint, which is `snellen.testing.server`."""

from snellen.testing.server import *  # noqa: F403
