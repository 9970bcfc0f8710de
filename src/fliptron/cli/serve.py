"""`fliptron serve`."""

from __future__ import annotations

import os
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from fliptron.cli.group import Whole, command
from fliptron.refusals import InputError
from fliptron.service.app import App
from fliptron.service.backup import back_up
from fliptron.service.serving import open_store, run
from fliptron.service.settings import SCOPES, ModelSettings, Settings, in_database, read_settings
from fliptron.service.tokens import new_token as make_token


@command(name="serve")
@click.argument("what", metavar="[MODEL.npz|SETTINGS.toml]", required=False)
@click.option("--demo", is_flag=True, help="Serve a made-up shop, whose truth is known, until Ctrl-C; keep nothing.")
@click.option("--store", metavar="FILE|ADDRESS", help="The journal. Default: journal.db, or as the settings say.")
@click.option("--host", help="The address to listen at. Default: 127.0.0.1, which other machines cannot reach.")
@click.option("--port", type=Whole(), help="Default: 8000; 0 takes a free one.")
@click.option("--new-token", metavar="NAME", help="Make a token, print it once, and end.")
@click.option("--scopes", default="decide,feedback", show_default=True, help=f"Of the new token: {', '.join(SCOPES)}.")
@click.option("--backup", metavar="FILE", help="Copy the journal, also while a server runs, and end.")
def serve(
    *,
    what: str | None,
    demo: bool,
    store: str | None,
    host: str | None,
    port: int | None,
    new_token: str | None,
    scopes: str,
    backup: str | None,
) -> None:
    """Answer over HTTP: which label to play, and what came back; keep everything in a journal; learn.

    MODEL.npz is what `fliptron learn` saved; SETTINGS.toml may describe several models, with rules and tokens. The
    first start prints a token that may do everything; it is shown once. Stop with Ctrl-C: what was answered is kept,
    however the server ends.

    \b
    Examples:
      fliptron serve --demo
      fliptron serve policy.npz
      fliptron serve shop.toml --port 9000
      fliptron serve shop.toml --new-token web --scopes decide,feedback
      fliptron serve shop.toml --backup monday.db
    """
    if demo:
        if what is not None or store is not None or new_token is not None or backup is not None:
            raise InputError("--demo has a model and a journal of its own; only --host and --port go with it")
        _demo(host or "127.0.0.1", port or 0)
        return
    if what is None:
        raise InputError("a model's .npz or settings in .toml are expected, or --demo")
    settings = _settings(what)
    given: dict[str, Any] = {"store": store, "host": host, "port": port}
    settings = replace(settings, **{name: value for name, value in given.items() if value is not None})
    if backup is not None and in_database(settings.store):
        raise InputError("the journal is a database; pg_dump copies it, also while servers run")
    if backup is not None:
        back_up(settings.store, backup)
        click.echo(f"Backup: {backup}")
    elif new_token is not None:
        _add_token(settings, new_token, scopes)
    else:
        run(settings, click.echo, started=_invite if sys.stdout.isatty() else None)


def _invite(app: App, address: str) -> None:
    """Whoever sits at the terminal is the operator."""
    admin = next((token for token in app.tokens.known if "admin" in token.scopes), None)
    if admin is not None:
        click.echo(f"Page: {address}/#{app.front.invite(admin)} (logs in once, within ten minutes)")


def _demo(host: str, port: int) -> None:
    from fliptron.cli.storefront import MODEL, RATES, Storefront  # noqa: PLC0415  # a server does without a client

    shops: list[Storefront] = []

    def stopping() -> None:
        for each in shops:
            each.stop()

    text, token = make_token("demo", SCOPES)

    def started(app: App, address: str) -> None:
        _invite(app, address)
        click.echo(
            f"A made-up shop asks for offers. Visitors click {RATES[0]:.0%} of the offers they do not want and "
            f"{1 - RATES[1]:.0%} of those they do,\nseconds later. The service is told none of this; on its page, true "
            "accuracy appears in half a minute."
        )
        shops.append(Storefront(address, text, click.echo))
        shops[0].start()

    click.echo("Starting; the very first time, the learner is compiled, which takes half a minute.")
    with tempfile.TemporaryDirectory(prefix="fliptron-") as folder:
        journal = str(Path(folder) / "journal.db")
        try:
            settings = Settings(models=(MODEL,), tokens=(token,), host=host, port=port, store=journal)
            run(settings, click.echo, started=started, stopping=stopping)
        finally:
            for each in shops:
                each.join(10.0)
    click.echo("The shop has closed; nothing was kept.")


def _settings(what: str) -> Settings:
    path = Path(what)
    if path.suffix == ".toml":
        return read_settings(path)
    if path.suffix != ".npz":
        raise InputError(f"{what} ends in {path.suffix!r}; a model's .npz or settings in .toml are expected")
    if not path.is_file():
        raise InputError(f"{what} does not exist")
    return Settings(models=(ModelSettings(name=path.stem, file=os.fspath(path)),))


def _add_token(settings: Settings, name: str, scopes: str) -> None:
    text, token = make_token(name, [scope.strip() for scope in scopes.split(",")])
    store = open_store(settings.store)
    try:
        store.add_token(token)
    finally:
        store.close()
    click.echo(f"Token {name}, for {scopes}; it is shown once: {text}")
