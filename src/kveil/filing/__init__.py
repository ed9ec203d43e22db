"""Ledgers as documents for whoever files them: entries of one or several, tables, and a page with a picture."""
