"""Reproductions of published figures. Nothing imports this room but the command line."""
