"""The journal is a log: exported, and read by the other commands, also while a server writes to it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from fliptron import Log, Policy
from fliptron.cli.group import commands as main
from fliptron.service.export import export
from fliptron.service.settings import ModelSettings
from fliptron.service.sqlite import Journal
from serving import SHOP, flipped, generator, record, serving, settings, shop, wanted

ROUNDS = 1500


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A journal of two models that a server has open."""
    path = tmp_path_factory.mktemp("log") / "journal.db"
    plain = ModelSettings(name="plain", labels=("a", "b"), features=3)

    async def play() -> None:
        async with serving(settings(shop(gamma=0.2), plain), path) as client:
            random = generator(1)
            for at in range(ROUNDS):
                shown = record(random)
                answer = await client.decide(shown, source="web")
                if at % 10:
                    await client.feedback(answer, flipped(answer["label"] == wanted(shown), random))
            for event in [await client.decide([1, 2, at], "plain") for at in range(3)]:
                await client.feedback(event, 1, "plain")

    asyncio.run(play())
    server = Journal(path)
    yield path
    server.close()


def run(*arguments: Any) -> Any:
    return CliRunner().invoke(main, [str(each) for each in arguments])


def test_the_export_is_a_log_whose_columns_are_guessed(journal: Path, tmp_path: Path) -> None:
    reader = Journal(journal, alone=False)
    assert export(reader, 1, SHOP["labels"], tmp_path / "shop.parquet") == ROUNDS * 9 // 10
    export(reader, 2, ("a", "b"), tmp_path / "plain.parquet")
    reader.close()
    log = Log(tmp_path / "shop.parquet")
    assert log.features == ["age", "city"]
    assert set(log.roles) == {"label", "bit", "probability", "greedy", "margin"}
    assert set(log.labels) == set(SHOP["labels"])
    assert Log(tmp_path / "plain.parquet", labels=["a", "b"]).features == ["x0", "x1", "x2"]


def test_estimate_learn_and_evaluate_read_the_journal(journal: Path, tmp_path: Path) -> None:
    source = f"{journal}:shop"
    found = run("estimate", source, "--json", "--out", tmp_path)
    assert found.exit_code == 0, found.output
    assert json.loads(found.stdout)["rounds"] == ROUNDS * 9 // 10
    kept = tmp_path / "learnt.npz"
    found = run("learn", source, "--save", kept, "--holdout", "0.3")
    assert found.exit_code == 0, found.output
    assert Policy.load(kept).predict([{"city": "Rome", "age": 30}]) == ["hats"]
    found = run("evaluate", source, "--policy", kept, "--out", tmp_path)
    assert found.exit_code == 0, found.output


@pytest.mark.parametrize(
    ("source", "sentence"),
    [("{}", "say which one, such as"), ("{}:boots", "has the models shop, plain"), ("nowhere.db", "nowhere.db")],
)
def test_a_journal_that_cannot_be_read_is_refused(journal: Path, source: Any, sentence: Any) -> None:
    found = run("estimate", source.format(journal))
    assert found.exit_code == 2
    assert sentence in found.output.replace("\n", " ")


def test_a_journal_whose_only_model_never_got_ready_is_refused(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "new.db")
    journal.open_model("shop", b"{}")  # and the server is stopped while it compiles
    journal.close()
    found = run("estimate", tmp_path / "new.db")
    assert (found.exit_code, "has no model yet" in found.output.replace("\n", " ")) == (2, True), found.exception


def test_serve_refuses_what_it_cannot_serve(journal: Path, tmp_path: Path) -> None:
    told = tmp_path / "shop.toml"
    told.write_text(f"store = '{journal}'\n[models.shop]\nlabels = ['a', 'b']\nfeatures = 2\n")
    for arguments, sentence in (
        ((told,), "another server uses"),
        ((tmp_path / "none.toml",), "cannot be read"),
        ((tmp_path / "none.npz",), "does not exist"),
        ((tmp_path / "none.csv",), "a model's .npz or settings in .toml"),
        ((told, "--host", "256.1.1.1"), "cannot be listened at"),
        ((told, "--store", "postgresql://nowhere"), "the database cannot be used"),
        ((told, "--store", tmp_path / "new.db", "--new-token", "a", "--scopes", "all"), "the scope is 'all'"),
    ):
        found = run("serve", *arguments, "--port", "0")
        assert (found.exit_code, sentence in found.output.replace("\n", " ")) == (2, True), found.output


def test_a_first_start_that_is_refused_leaves_no_journal_and_no_token(tmp_path: Path) -> None:
    told = tmp_path / "shop.toml"
    for model in ("labels = ['a', 'b']\nfeatures = 0", "file = 'none.npz'"):
        told.write_text(f"store = 'new.db'\n[models.shop]\n{model}\n")
        found = run("serve", told, "--port", "0")
        assert (found.exit_code, "ft_" in found.output) == (2, False), found.output
        assert list(tmp_path.iterdir()) == [told]


def test_a_backup_and_a_token_are_made_from_the_command_line(journal: Path, tmp_path: Path) -> None:
    told = tmp_path / "shop.toml"
    told.write_text(f"store = '{journal}'\n[models.shop]\nlabels = ['a', 'b']\nfeatures = 2\n")
    found = run("serve", told, "--backup", tmp_path / "copy.db")
    assert found.exit_code == 0, found.output
    found = run("serve", told, "--store", tmp_path / "copy.db", "--new-token", "web", "--scopes", "decide")
    assert "ft_" in found.output
    copy = Journal(tmp_path / "copy.db")
    assert copy.tokens()[0].scopes == ("decide",)
    copy.close()


def test_a_journal_without_models_is_refused(tmp_path: Path) -> None:
    Journal(tmp_path / "new.db").close()
    result = CliRunner().invoke(main, ["estimate", str(tmp_path / "new.db")])
    assert result.exit_code == 2
    assert "has no model yet, so there is nothing to read" in result.output
