"""Exact, mergeable, order-independent integer statistics of rows. Still secret."""
