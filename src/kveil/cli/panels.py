"""Names of the groups that the options of a command are shown in, and types of options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

FIND, PRIVACY, ROWS, LEDGER, OUTPUT, ADVANCED = (
    "What to find", "Privacy", "Rows and columns", "Ledger and filing", "Output", "Advanced",
)  # fmt: skip

OF_WORDS = {  # where an option belongs, in commands that do not say so
    FIND: "k k_range n_clusters objective metric protocol preset demand truncate xy degrees methods n d rounds",
    PRIVACY: "epsilon delta bounds center radius person max_rows_per_person relation no_privacy epsilon_per_run policy secret",
    ROWS: "columns delimiter missing categories category_weight scaling rows dataset public sample",
    LEDGER: "ledger purpose data_name by sign",
    OUTPUT: "out to as_json format force picture html as_csv as_html theme",
    ADVANCED: "random_state runs method n_steps memory workers seconds confidence timeout",
}
MANY = 8  # options, from which on they are shown in groups


def panel_of(name: str) -> str | None:
    """The group of an option; None if it has none."""
    return next((panel for panel, words in OF_WORDS.items() if name in words.split()), None)


def place_of(panel: str | None) -> int:
    """Where a group stands; arguments, and options of no group, come first."""
    return [None, *OF_WORDS].index(panel) if panel in OF_WORDS else 0


FILES = (
    ".csv, .tsv (also .gz), .parquet, .feather, .npz (array x) or .npy, or a URL; "
    "several files, a pattern or a folder of .parquet are one table"
)
DATA = Annotated[list[str], typer.Argument(help=FILES, metavar="DATA", show_default=False)]
DELIMITER = Annotated[
    str | None,
    typer.Option(help="between cells of a .csv or .tsv, such as ';' or tab; default comma, or tab", rich_help_panel=ROWS),
]  # fmt: skip
EPSILON = Annotated[float, typer.Option(help="privacy loss; smaller is more private and noisier", rich_help_panel=PRIVACY)]
DELTA = Annotated[float, typer.Option(help="0 for a pure guarantee; 1e-6 often gives less noise", rich_help_panel=PRIVACY)]
PERSON = Annotated[str | None, typer.Option(help="column of ids: protect people instead of records", rich_help_panel=PRIVACY)]
MAX_ROWS = Annotated[int, typer.Option(help="rows per person that count", rich_help_panel=PRIVACY)]
COLUMNS = Annotated[
    str | None,
    typer.Option(
        help="names, or numbers of arrays, separated by commas; default all. Text in them counts as missing",
        rich_help_panel=ROWS,
    ),
]  # fmt: skip
AS_JSON = Annotated[bool, typer.Option("--json", help="print JSON, also for errors", rich_help_panel=OUTPUT)]
SEED = Annotated[
    int | None, typer.Option(min=0, max=2**32 - 1, help="steers public choices, never noise", rich_help_panel=ADVANCED)
]  # fmt: skip
