"""The browser applications: one guarded frame, and the rooms that stand in it."""
