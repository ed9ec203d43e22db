"""What a benchmark was asked for on the command line: names, and `option=value`."""


def parted(given: tuple[str, ...]) -> tuple[list[str], dict[str, str]]:
    """The names, and the options by name."""
    return [text for text in given if "=" not in text], dict(text.split("=", 1) for text in given if "=" in text)
