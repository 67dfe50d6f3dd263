"""Test what calls models without any model: a scripted client, and a fake endpoint with faults."""

from snellen.testing.client import ScriptedClient
from snellen.testing.server import Behaviour, FakeServer, Seen

__all__ = ["Behaviour", "FakeServer", "ScriptedClient", "Seen"]
