"""Rows that come in batches and are seen once: synopses without privacy, and linear summaries for a private release."""
