"""Pictures: formats, sizes, masks, and preparation for a model."""
