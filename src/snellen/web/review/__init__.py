"""`snellen review` in the browser: people decide on what was built, and audit a judge."""
