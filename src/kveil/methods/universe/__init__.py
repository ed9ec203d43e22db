"""Centres among the points of a public universe."""
