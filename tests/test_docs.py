"""The docs name every public thing, link to what exists, and their programs run."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import fliptron
from fliptron.experiments.plan import read_plan

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
MADE = ("examples/",)  # pages that only exist once the site is built
ELSEWHERE = [
    "debiasing.Channels",
    "debiasing.channels_of",
    "adapters.coba.NoisyBanditLearner",
    "adapters.coba.NoisyEnvironment",
    "adapters.coba.NoisyEvaluator",
    "adapters.river.NoisyBanditClassifier",
    "adapters.river.NoisyBanditPolicy",
    "adapters.sklearn.NoisyBanditClassifier",
    "experiments.plan.Spec",
    "experiments.plan.grid",
    "experiments.plan.read_plan",
    "experiments.runner.play",
    "logs.export.to_feedback",
    "logs.obp.load_feedback",
    "noise.estimate.RateEstimator",
    "results.Results",
    "service.app.App",
    "service.export.export",
    "service.live.Live",
    "service.postgres.Postgres",
    "service.settings.ModelSettings",
    "service.settings.Settings",
    "service.settings.read_settings",
    "service.sqlite.Journal",
    "service.backup.back_up",
    "service.store.Store",
    "results.Run",
    "service.client.Answer",
    "service.client.Client",
    "service.client.ServiceError",
    "theory.advise",
    "theory.anytime",
    "theory.constants",
    "theory.mistake_bound",
]


RUN = ("clicks.md", "noise.md", "logs.md", "experiments.md")
"""Pages behind the doors of the front page, whose programs run."""


def documented() -> list[str]:
    pages = "\n".join(path.read_text(encoding="utf-8") for path in (DOCS / "reference").glob("*.md"))
    return re.findall(r"^\.\. auto(?:class|function|exception):: fliptron\.(\S+)$", pages, re.M)


@pytest.mark.parametrize("name", [*fliptron.__all__, *ELSEWHERE])
def test_the_reference_has_every_public_name_once(name: Any) -> None:
    assert documented().count(name) == 1


def test_the_reference_has_no_name_that_is_gone() -> None:
    for name in documented():
        module, _, last = name.rpartition(".")
        parent = __import__(f"fliptron.{module}", fromlist=[last]) if module else fliptron
        assert hasattr(parent, last), name


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_of_a_page_leads_somewhere(page: Any) -> None:
    text = re.sub(r"^```(?!\{).*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    targets = re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r"^```\{include\} (\S+)$", text, re.M)
    for target in targets:
        place = target.split("#")[0]
        if place and "://" not in place and not place.startswith(MADE):
            assert (page.parent / place).exists(), f"{page.name} links to {target}"


def test_every_page_is_in_the_navigation() -> None:
    listed = {DOCS / "index.md"}
    for page in sorted(DOCS.rglob("*.md")):
        for tree in re.findall(r"^```\{toctree\}\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S):
            entries = [line.rsplit("<")[-1].rstrip(">") for line in tree.splitlines() if line and line[0] != ":"]
            listed |= {page.parent / f"{entry}.md" for entry in entries}
    quoted = {DOCS / "tables" / f"{name}.md" for name in ("coverage", "rates", "rcine")}
    assert {path for path in DOCS.rglob("*.md") if "_build" not in path.parts} - listed == quoted


@pytest.mark.parametrize(
    "page",
    [
        *("index.md", *RUN, "adapters.md", "reference/checking.md"),
        *sorted(f"migrate/{path.name}" for path in (DOCS / "migrate").glob("*.md")),
    ],
)
def test_the_programs_of_a_page_run(page: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    text = (DOCS / page).read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    try:
        for kind, program in re.findall(r"```(python|console)\n(.*?)```", text, re.S):
            if kind == "python":
                exec(program, names)
                continue
            for line in re.findall(r"^\$ (.*)$", program, re.M):
                subprocess.run(line, shell=True, check=True, capture_output=True)
    finally:
        for server in (each for each in names.values() if isinstance(each, subprocess.Popen)):
            server.kill()
            server.communicate()


def test_every_door_of_the_front_page_is_one_click_from_a_page_that_runs() -> None:
    (doors,) = re.findall(r"^\|---\|---\|---\|\n\| (.*) \|$", (DOCS / "index.md").read_text(encoding="utf-8"), re.M)
    for door in doors.split(" | "):
        behind = set(re.findall(r"\]\(([^)#]+)", door)) & set(RUN)
        assert any("```console" in (DOCS / page).read_text(encoding="utf-8") for page in behind), door


def test_the_plan_of_the_docs_is_a_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (plan,) = re.findall(r"```toml\n(.*?)```", (DOCS / "plans.md").read_text(encoding="utf-8"), re.S)
    monkeypatch.chdir(tmp_path)
    Path("clicks.csv").write_text("0,1,a\n1,0,b\n")
    Path("plan.toml").write_text(plan)
    assert len(read_plan("plan.toml")) == 2 * 2 * 10 * 3 + 3


def test_every_parameter_of_a_public_function_or_class_is_explained() -> None:
    told_by_its_fields = {"Alarm", "Choice", "Dataset", "Schema", "Decision", "Estimate", "Rates", "Rounds", "Trace"}
    not_built_by_users = {"InputError", "Learner", "Learns"}
    for name in sorted({*fliptron.__all__} - told_by_its_fields - not_built_by_users):
        thing = getattr(fliptron, name)
        _, _, after = (inspect.getdoc(thing) or "").partition("Parameters\n----------\n")
        lines = [line for line in after.split("\n\n")[0].splitlines() if not line.startswith(" ")]
        assert {word.strip() for line in lines for word in line.split(",")} == {*inspect.signature(thing).parameters}
