"""Where the pictures of a new benchmark come from."""
