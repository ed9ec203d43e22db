"""The default method: a tree of cells, then steps about released centres."""
