"""Regions of pictures: found by models or without, or read from annotations that exist."""
