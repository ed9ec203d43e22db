"""Private medians: seeds, then steps."""
