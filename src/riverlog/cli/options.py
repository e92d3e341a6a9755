"""Options that many commands share, each described once."""

from typing import Annotated, Final

import typer

from riverlog.cli.render import OutputFormat

BOOTSTRAP_DEFAULT: Final = "127.0.0.1:9092"
INT16_MAX: Final = 2**15 - 1
INT32_MAX: Final = 2**31 - 1
"""What the wire has room for; a larger number is a mistake, and better found here."""

Bootstrap = Annotated[
    str,
    typer.Option(
        "-b",
        "--bootstrap-server",
        envvar="RIVERLOG_BOOTSTRAP_SERVERS",
        metavar="HOST:PORT,…",
        help="Brokers to ask first, separated by commas.",
    ),
]
ClientSettings = Annotated[
    list[str] | None,
    typer.Option("-X", metavar="NAME=VALUE", help="A setting of the client, such as request.timeout.ms=5000."),
]
Output = Annotated[
    OutputFormat | None,
    typer.Option(
        "-o",
        "--output",
        metavar="table|json|yaml",
        help="How to print. Without it: text on a terminal, JSON lines when piped.",
    ),
]
TextOutput = Annotated[
    OutputFormat | None,
    typer.Option("-o", "--output", metavar="table|json|yaml", help="How to print. Without it: text, also when piped."),
]
"""For commands whose text is made of lines that a program can read as well."""
