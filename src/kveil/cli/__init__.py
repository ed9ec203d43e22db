"""The command line: a door. Nothing imports it."""
