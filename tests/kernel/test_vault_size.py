"""The vault stays small enough to be audited in an hour."""

import ast
import io
import tokenize
from pathlib import Path

import kveil.kernel

LIMIT = 1200
VAULT = Path(kveil.kernel.__file__).parent


def lines_of_code(text):
    """Lines that hold a token of code: blank lines, comments and docstrings do not count."""
    skip = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    lines = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in skip:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node, clean=False) is not None:
            lines.difference_update(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    return len(lines)


def test_lines_are_counted_as_the_limit_means_them():
    text = '"""One.\n\nTwo."""\n\n# a comment\nx = 1  # code\n\n\ndef f():\n    """Doc."""\n    y = """a\n    b"""\n'
    text += "    return (\n        y\n    )\n"
    assert lines_of_code(text) == 1 + 1 + 2 + 3


def test_the_vault_has_at_most_1200_lines_of_code():
    counts = {path.name: lines_of_code(path.read_text()) for path in sorted(VAULT.rglob("*.py"))}
    assert sum(counts.values()) <= LIMIT, counts
