"""The judge that needs no network: a sentence encoder with rules on top."""
