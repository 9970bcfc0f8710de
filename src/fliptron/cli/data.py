"""`fliptron data`."""

from __future__ import annotations

import json

import click

from fliptron.cli.group import command
from fliptron.cli.show import show
from fliptron.datasets.registry import REGISTRY


@command(name="data")
@click.option("--json", "as_json", is_flag=True, help="Print rows as JSON instead of a table.")
def data(*, as_json: bool) -> None:
    """List the data sets: shape, classes, source, and whether they are here.

    Files are looked for in the folder FLIPTRON_DATA names, then in the download cache. A data set that
    is not here is downloaded, and its checksum verified, when a command first asks for it; optdigits
    and usps must be put in place by hand (optdigits.csv is UCI's .tra file followed by the .tes file).
    Your own data needs no name: give commands the path of a table, an .npz (X, y) or a libsvm file.
    """
    rows = [
        {
            "name": name,
            "rows": entry.rows,
            "features": entry.features,
            "classes": entry.classes,
            "present": entry.present(name),
            "source": entry.source,
        }
        for name, entry in REGISTRY.items()
    ]
    if as_json:
        click.echo(json.dumps(rows, indent=2))
    else:
        show(list(rows[0]), [list(row.values()) for row in rows])
