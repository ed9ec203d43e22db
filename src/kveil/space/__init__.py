"""What *near* means: distances and clipping, exact on the grid."""
