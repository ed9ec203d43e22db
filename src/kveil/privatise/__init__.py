"""Summary to noisy summary, one mechanism a file. The only caller of the vault."""
