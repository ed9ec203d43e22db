"""What every refusal of a model must and must not say."""

SECRET = 271.828182  # what a row may hold
N = 8191  # rows: a number that no path or parameter is likely to hold


def says_what_to_do(error: BaseException | None) -> None:
    """One paragraph, no row value, no number of rows; also on every error it carries along."""
    while error is not None:
        text = str(error)
        assert "271.8" not in text
        assert str(N) not in text
        assert "\n" not in text
        assert len(text) > 30
        error = error.__cause__ or error.__context__
