"""What may be asked about rows: how the exact answer is computed, and how far one row can move it. Answers are secret."""
