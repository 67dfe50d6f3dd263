"""The stages that build perception questions, and the files that they read and write."""
