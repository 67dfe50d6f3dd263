"""The way to models: the OpenAI-compatible wire format, its failures, and probing."""
