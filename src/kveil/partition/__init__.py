"""Public ways to divide a space: shifted cubes, random projections. No room here has seen a row."""
