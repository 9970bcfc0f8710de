// The page: login, models, and the stream of numbers.
import { Accuracy, Traffic } from "./charts.js";
import { show } from "./show.js";
import { sentence } from "./words.js";

const $ = (id) => document.getElementById(id);
const chart = new Accuracy($("chart"), $("readout"));
const traffic = new Traffic($("traffic"));
let stream = null;
let heard = 0;
let model = null;
let totals = [];

async function ask(path, body) {
  const told = body === undefined ? {} : { method: "POST", headers: { "content-type": "application/json", "x-fliptron-page": "1" }, body: JSON.stringify(body) };
  const response = await fetch(path, { ...told, credentials: "same-origin", cache: "no-store" });
  const answer = response.status === 204 ? null : await response.json().catch(() => null);
  if (!response.ok) throw Object.assign(new Error(answer?.error ?? `the service answered ${response.status}`), { status: response.status });
  return answer;
}

function status(kind, words) {
  $("status").className = `status ${kind}`;
  const node = $("status").lastElementChild;
  if (node.textContent !== words) node.textContent = words;
}

function notice(words) {
  $("notice").hidden = !words;
  if ($("notice").textContent !== words) $("notice").textContent = words;
}

function askForToken(error = "") {
  stream?.close();
  stream = null;
  $("page").hidden = true;
  $("login").hidden = false;
  $("login-error").hidden = !error;
  $("login-error").textContent = error;
  document.title = "Fliptron";
  $("token").focus();
}

async function login(token) {
  try {
    await ask("login", { token });
  } catch (error) {
    askForToken(sentence(error.message));
    return;
  }
  $("token").value = "";
  await begin();
}

async function begin() {
  let models;
  try {
    models = await ask("v1/models");
  } catch (error) {
    if (error.status === 401 || error.status === 403) askForToken();
    else {
      $("page").hidden = false;
      status("bad", "no answer");
      notice("The service does not answer. Trying again.");
      setTimeout(begin, 2000);
    }
    return;
  }
  $("login").hidden = true;
  $("page").hidden = false;
  notice("");
  const choice = $("model");
  choice.replaceChildren(...models.map((each) => Object.assign(document.createElement("option"), { value: each.name, textContent: each.name })));
  choice.disabled = models.length < 2;
  const wanted = models.some((each) => each.name === model) ? model : models[0].name;
  choice.value = wanted;
  await watch(wanted);
}

async function watch(name) {
  model = name;
  stream?.close();
  const path = `v1/models/${encodeURIComponent(name)}`;
  $("export").href = `${path}/export.parquet`;
  $("save").href = `${path}/model.npz`;
  chart.clear();
  traffic.clear();
  totals = [];
  try {
    const past = await ask(`${path}/history`);
    const since = past.latest.length ? past.latest[0][0] : Infinity;
    chart.fill([...past.life.filter((point) => point[0] < since), ...past.latest]);
  } catch (error) {
    notice(sentence(error.message));
    return;
  }
  stream = new EventSource(`${path}/live`);
  stream.addEventListener("message", (event) => hear(JSON.parse(event.data)));
  stream.addEventListener("error", () => {
    status("bad", "connection lost");
    notice("The connection to the service is lost. The numbers below are the last that came; trying again.");
    if (stream?.readyState === EventSource.CLOSED) setTimeout(begin, 2000);
  });
}

function hear(live) {
  if (live.model !== model) return;
  heard = performance.now();
  status("good", "live");
  notice("");
  const rates = perSecond(live);
  show(live, rates, quarantine);
  const { recent, recent_bit: bit } = live.noise;
  chart.add([live.time, recent?.value ?? null, recent?.low ?? null, recent?.high ?? null, bit]);
  traffic.add(live.time, rates.decisions, rates.feedback);
}

// Over the last five seconds, so that traffic in bursts can be read.
function perSecond(live) {
  totals = [...totals.filter((each) => live.time - each.time < 5.5 && each.decisions <= live.decisions), live];
  const [first] = totals;
  const time = live.time - first.time;
  if (time < 0.5) return { decisions: live.decisions_per_second, feedback: live.feedback_per_second };
  return { decisions: (live.decisions - first.decisions) / time, feedback: (live.feedback - first.feedback) / time };
}

async function quarantine(source, quarantined, button) {
  button.disabled = true;
  try {
    await ask(`v1/models/${encodeURIComponent(model)}/sources`, { source, quarantined, reason: "by hand, on the page" });
  } catch (error) {
    notice(sentence(error.message));
  }
  button.disabled = false;
}

setInterval(() => {
  const silent = (performance.now() - heard) / 1000;
  if (stream?.readyState === EventSource.OPEN && heard && silent > 6) status("weak", `no news for ${Math.round(silent)} s`);
}, 1000);

$("login-form").addEventListener("submit", (event) => {
  event.preventDefault();
  login($("token").value.trim());
});
$("logout").addEventListener("click", async () => {
  await ask("logout", {}).catch(() => null);
  askForToken();
});
$("model").addEventListener("change", (event) => watch(event.target.value));
for (const button of document.querySelectorAll("[data-range]")) {
  button.addEventListener("click", () => {
    for (const each of document.querySelectorAll("[data-range]")) each.setAttribute("aria-pressed", String(each === button));
    chart.show(Number(button.dataset.range));
  });
}

const code = location.hash.slice(1);
if (code.startsWith("once_")) {
  history.replaceState(null, "", location.pathname);
  login(code);
} else begin();
