"""Damaged input for everything that kveil reads: `python -m benchmarks.fuzz --help`.

`mutating.py` spoils good bytes, `files.py` and `wire.py` list the readers, `running.py` counts what they do.
"""
