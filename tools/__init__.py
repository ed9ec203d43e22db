"""Programs for those who work on kveil; nothing here is installed."""
