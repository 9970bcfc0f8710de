"""The operator's page: who gets in, what the browser is told, and what a person sees in it."""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fliptron.cli.serve import serve
from fliptron.service.app import App
from fliptron.service.client import Client
from fliptron.service.front import COOKIE, PAGE
from fliptron.service.history import History, Point
from fliptron.service.settings import SCOPES, ModelSettings, Settings, read_settings
from fliptron.service.tokens import new_token
from served import served
from serving import TEXT, TOKEN, settings, shop

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DOCS = Path(__file__).parents[1] / "docs"
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
POOR, POOR_TOKEN = new_token("web", ["decide", "feedback"])


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, App]]:
    plain = ModelSettings(name="plain", labels=("a", "b"), features=2, learner="Banditron")
    told = Settings(models=(shop(), plain), tokens=(TOKEN, POOR_TOKEN))
    with served(told, tmp_path_factory.mktemp("page") / "journal.db") as found:
        yield found


def ask(address: str, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any, Any]:
    connection = http.client.HTTPConnection(address.removeprefix("http://"), timeout=10)
    try:
        content = None if body is None else json.dumps(body)
        connection.request(method, path, content, {name.replace("_", "-"): value for name, value in headers.items()})
        response = connection.getresponse()
        return response.status, response.read(), response.headers
    finally:
        connection.close()


def cookie_of(address: str, token: str) -> str:
    status, _, headers = ask(address, "POST", "/login", {"token": token})
    assert status == 204
    return str(headers["set-cookie"]).partition(";")[0]


class TestLogin:
    def test_a_token_becomes_a_cookie_that_opens_what_the_page_reads(self, service: Any) -> None:
        status, _, headers = ask(service[0], "POST", "/login", {"token": TEXT})
        assert status == 204
        told = headers["set-cookie"]
        assert "HttpOnly" in told
        assert "SameSite=strict" in told
        assert TEXT not in told
        cookie = told.partition(";")[0]
        for path in ("/v1/models", "/v1/models/shop/history", "/v1/models/shop/estimate", "/v1/models/shop/sources"):
            assert ask(service[0], "GET", path, cookie=cookie)[0] == 200
            assert ask(service[0], "GET", path)[0] == 401

    @pytest.mark.parametrize(
        ("token", "status", "words"),
        [("ft_wrong", 401, "not known here"), (POOR, 403, "admin"), ("once_wrong", 401, "used already"), ("", 401, "")],
        ids=["unknown", "poor", "used", "none"],
    )
    def test_wrong_tokens_get_a_sentence_and_no_cookie(self, service: Any, token: str, status: int, words: str) -> None:
        got, body, headers = ask(service[0], "POST", "/login", {"token": token})
        assert (got, json.loads(body)["status"]) == (status, status)
        assert words in json.loads(body)["error"]
        assert headers["set-cookie"] is None

    def test_a_cookie_that_was_changed_is_worth_nothing(self, service: Any) -> None:
        name, _, value = cookie_of(service[0], TEXT).partition("=")
        until, who, code = value.split(".")
        for odd in (
            f"{int(until) + 1}.{who}.{code}", f"{until}.{who}.{code[::-1]}",
            f"{until}.{POOR_TOKEN.digest.hex()[:16]}.{code}", f"1.{who}.{code}", until, "", "²." + value,
        ):  # fmt: skip
            status = ask(service[0], "GET", "/v1/models", cookie=f"{name}={odd}".encode("latin-1"))[0]
            assert status == 401, odd

    def test_changing_something_needs_the_header_that_only_the_page_sends(self, service: Any) -> None:
        cookie, body = cookie_of(service[0], TEXT), {"source": "a bot", "quarantined": True}
        path = "/v1/models/shop/sources"
        assert ask(service[0], "POST", path, body, cookie=cookie)[0] == 401
        status, answer, _ = ask(service[0], "POST", path, body, cookie=cookie, x_fliptron_page="1")
        assert status == 200
        assert [each["source"] for each in json.loads(answer) if each["quarantined"]] == ["a bot"]
        ask(service[0], "POST", path, body | {"quarantined": False}, cookie=cookie, x_fliptron_page="1")

    def test_a_cookie_does_not_decide(self, service: Any) -> None:
        cookie = cookie_of(service[0], TEXT)
        body = {"features": {"age": 1, "city": "Rome"}}
        assert ask(service[0], "POST", "/v1/models/shop/decide", body, cookie=cookie, x_fliptron_page="1")[0] == 401

    def test_an_invitation_is_good_once(self, service: Any) -> None:
        code = service[1].front.invite(TOKEN)
        assert ask(service[0], "POST", "/login", {"token": code})[0] == 204
        assert ask(service[0], "POST", "/login", {"token": code})[0] == 401

    def test_a_login_outlives_a_restart_and_ends_with_its_token(self, tmp_path: Path) -> None:
        path = tmp_path / "journal.db"
        with served(settings(shop()), path) as (address, _):
            cookie = cookie_of(address, TEXT)
        with served(settings(shop()), path) as (address, _):
            assert ask(address, "GET", "/v1/models", cookie=cookie)[0] == 200
        with served(Settings(models=(shop(),), tokens=(new_token("new", SCOPES)[1],)), path) as (address, _):
            assert ask(address, "GET", "/v1/models", cookie=cookie)[0] == 401

    def test_logging_out_takes_the_cookie_away(self, service: Any) -> None:
        told = ask(service[0], "POST", "/logout", {})[2]["set-cookie"]
        assert told.startswith(f'{COOKIE}=""')
        assert "Max-Age=0" in told


class TestFiles:
    def test_every_file_comes_under_a_strict_policy(self, service: Any) -> None:
        for path in ("/", *(f"/{each.relative_to(PAGE)}" for each in PAGE.rglob("*") if each.is_file())):
            status, _, headers = ask(service[0], "GET", path)
            assert status == 200, path
            policy = headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            assert headers["x-content-type-options"] == "nosniff"

    def test_nothing_stands_in_the_page_that_the_policy_forbids_or_that_comes_from_elsewhere(self) -> None:
        page = (PAGE / "index.html").read_text(encoding="utf-8")
        assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\bstyle=|\bon\w+=|https?://", page)
        for script in PAGE.glob("*.js"):
            assert not re.search(r"innerHTML|outerHTML|document\.write|eval\(|https?://", script.read_text("utf-8"))

    def test_the_licence_of_what_is_not_ours_is_beside_it(self) -> None:
        assert "MIT" in (PAGE / "uplot" / "LICENSE").read_text(encoding="utf-8")

    def test_nothing_outside_the_folder_is_served(self, service: Any) -> None:
        for path in ("/../front.py", "/%2e%2e/front.py", "/..%2ffront.py", "/uplot/../../app.py", "//etc/passwd"):
            assert ask(service[0], "GET", path)[0] in (400, 404), path


class TestHistory:
    def test_a_long_life_is_thinned_and_the_last_minutes_are_not(self) -> None:
        history = History()
        for second in range(0, 200_000, 2):
            assert history.is_due(float(second))
            history.add(Point(float(second), 0.5, 0.4, 0.6, 0.3))
            assert not history.is_due(second + 1.0)
        past = history.past()
        life, latest = ([point.time for point in points] for points in (past.life, past.latest))
        assert life[0] == 0.0
        assert 200 <= len(life) <= 400
        assert life == sorted(life)
        assert latest == [float(second) for second in range(199_400, 200_000, 2)]

    def test_it_comes_back_as_it_was(self) -> None:
        history, again = History(), History()
        for second in range(0, 3000, 2):
            history.add(Point(float(second), None, None, None, 0.3))
        again.restore(json.loads(json.dumps(history.plain())))
        assert again.past().life == history.past().life
        assert again.is_due(3000.0)


class TestExamples:
    """Of docs/service-page.md and docs/deploy."""

    def blocks(self, kind: str) -> list[str]:
        text = (DOCS / "service-page.md").read_text(encoding="utf-8")
        return re.findall(rf"```{kind}\n(.*?)```", text, re.S)

    @pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl on this machine")
    def test_the_settings_the_curl_calls_and_the_program_work(self, tmp_path: Path) -> None:
        (toml,), (calls, tokens), (program,) = self.blocks("toml"), self.blocks("sh"), self.blocks("python")
        (tmp_path / "shop.toml").write_text(toml)
        if shutil.which("openssl") is not None:
            subprocess.run(["bash", "-ec", tokens], cwd=tmp_path, check=True)
            assert [token.name for token in read_settings(tmp_path / "shop.toml").tokens] == ["web"]
        told = replace(read_settings(tmp_path / "shop.toml"), tokens=(TOKEN,))
        with served(told, tmp_path / "journal.db") as (address, app):
            env = os.environ | {"SERVICE": address, "TOKEN": TEXT}
            done = subprocess.run(["bash", "-ec", calls], cwd=tmp_path, env=env, check=True, capture_output=True)
            assert done.stdout.count(b'{"status":"accepted"}') == 2
            assert done.stdout.count(b"event_id") == 3
            assert done.stdout.count(b"data: ") >= 1
            exec(program.replace("http://127.0.0.1:8000", address).replace("ft_…", TEXT), {})
            assert app.office is not None
            assert app.office.desks["shop"].ledger.totals["decisions"] == 6

    @pytest.mark.parametrize("name", ["fliptron.service", "Containerfile"])
    def test_the_options_in_the_examples_exist(self, name: str) -> None:
        options = re.findall(r"(?<=[\s\"])--[a-z-]+", re.search(r"fliptron\W+serve\W.*", self.command(name)).group())
        known = {option for each in serve.params for option in each.opts}
        assert options
        assert set(options) <= known

    def command(self, name: str) -> str:
        lines = (DOCS / "deploy" / name).read_text(encoding="utf-8").splitlines()
        return next(line for line in lines if line.startswith(("ExecStart=", "CMD ")))


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("there is no Chromium on this machine")
    sync = pytest.importorskip("playwright.sync_api", reason="Playwright, which drives Chromium, is not installed")
    with sync.sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield found
        found.close()


class Window:
    """A browser window, and everything that it complained of."""

    def __init__(self, browser: Any, **more: Any) -> None:
        self.context = browser.new_context(**more)
        self.page, self.complaints = self.context.new_page(), list[str]()
        self.page.set_default_timeout(60_000)
        self.page.on("console", lambda told: self.complaints.append(told.text) if told.type != "debug" else None)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def number(self, name: str) -> float:
        found = re.search(r"[\d.,]+", self.text(name))
        return float(found.group().replace(",", "")) if found else float("nan")

    def text(self, name: str) -> str:
        return str(self.page.text_content(f"#{name}"))

    def wait(self, condition: Callable[[], bool], seconds: float = 30.0) -> None:
        """Until a condition holds; Playwright's own way needs `eval`, which the page's policy forbids."""
        until = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < until, self.page.inner_text("body")
            self.page.wait_for_timeout(100)


def test_before_the_first_decision_the_page_says_what_to_do(service: Any, browser: Any) -> None:
    window = Window(browser)
    page = window.page
    page.goto(service[0])
    page.wait_for_selector("#login-form", state="visible")
    page.fill("#token", "ft_wrong")
    page.click("#login-form button")
    page.wait_for_selector("#login-error", state="visible")
    assert "not known here" in window.text("login-error")
    page.fill("#token", TEXT)
    page.click("#login-form button")
    page.wait_for_selector("#numbers", state="visible")
    window.wait(lambda: "live" in window.text("status"))
    assert window.text("verdict") == "no feedback yet"
    assert "/v1/models/shop/decide" in window.text("accuracy-words")
    (held,) = window.context.cookies()
    assert (held["httpOnly"], held["sameSite"]) == (True, "Strict")
    page.select_option("#model", "plain")
    with Client(service[0], TEXT, model="plain") as client:
        answer = client.decide([1.0, 2.0], source="<img src=x onerror=alert(1)>")
        client.feedback(answer.event_id, 1)
    window.wait(lambda: "Banditron learns, but does not estimate" in window.text("accuracy-words"))
    assert window.text("accuracy") == "?"
    page.click("#logout")
    page.wait_for_selector("#login-form", state="visible")
    assert window.context.cookies() == []
    page.reload()
    page.wait_for_selector("#login-form", state="visible")
    refused = [each for each in window.complaints if "401" not in each and "Password forms" not in each]
    assert refused == []
    window.context.close()


def test_the_demo_shows_true_accuracy_and_ends_at_once(browser: Any, tmp_path: Path) -> None:
    """What `make serve` does, in a real browser: numbers come and move, and the page fits a phone."""
    command = [sys.executable, "-m", "fliptron", "serve", "--demo"]
    told = os.environ | {"TMPDIR": str(tmp_path), "PYTHONUNBUFFERED": "1"}
    demo = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=told)
    assert demo.stdout is not None
    try:
        link = next(found[1] for line in demo.stdout if (found := re.search(r"Page: (\S+)", line)))
        window = Window(browser)
        page = window.page
        assert "script-src 'self'" in page.goto(link).headers["content-security-policy"]
        page.wait_for_selector("#numbers", state="visible")
        assert "once_" not in page.url
        window.wait(lambda: window.number("accuracy") > 0)
        before, seen = window.text("accuracy-interval"), window.number("decisions")
        window.wait(lambda: window.text("accuracy-interval") != before)
        window.wait(lambda: window.number("decisions") > seen > 0)
        assert 0 < window.number("raw") < 60
        assert window.text("verdict") in ("preliminary", "identified")
        assert page.locator("#chart canvas").count() == 1
        assert page.locator("#labels li").count() == 4
        page.set_viewport_size({"width": 375, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") == 375
        window.wait(lambda: page.locator("#sources tr").count() > 3)
        source = page.locator("#sources tr").first.get_attribute("data-source")
        page.click(f"tr[data-source='{source}'] button")
        window.wait(lambda: "1 source in quarantine" in window.text("sources-words"))
        page.click(f"tr[data-source='{source}'] button")
        window.wait(lambda: "Nobody is in quarantine" in window.text("sources-words"))
        refused = [each for each in window.complaints if "Password forms" not in each]
        assert refused == []
        demo.send_signal(signal.SIGINT)
        begun = time.monotonic()
        rest = demo.communicate(timeout=20)[0]
        assert time.monotonic() - begun < 8
        assert demo.returncode == 0
        assert rest.rstrip().endswith("The shop has closed; nothing was kept.")
        assert "Traceback" not in rest
        assert list(tmp_path.glob("fliptron-*")) == []
        page.wait_for_selector("#notice", state="visible")
        window.context.close()
    finally:
        if demo.poll() is None:
            demo.kill()
        demo.communicate(timeout=20)
