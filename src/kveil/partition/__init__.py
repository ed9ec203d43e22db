"""Public ways to divide a space: shifted cubes, random projections, trees of a universe. No room here has seen a row."""
