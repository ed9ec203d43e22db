"""Algorithms, each written once, against a desk: nothing in this room can reach a row."""
