// What is shown of a model, from one object of /live.
import * as say from "./words.js";

const $ = (id) => document.getElementById(id);

function text(node, words) {
  if (node.textContent !== words) node.textContent = words;
}

function make(tag, words = "", kind = "") {
  const made = document.createElement(tag);
  made.textContent = words;
  if (kind) made.className = kind;
  return made;
}

function place(node, from, to) {
  node.style.setProperty("--from", `${100 * Math.max(0, from)}%`);
  node.style.setProperty("--to", `${100 * Math.min(1, to)}%`);
}

export function show(live, rates, act) {
  hero(live);
  noise(live);
  traffic(live, rates);
  delay(live);
  exploration(live);
  labels(live);
  sources(live, act);
  alarms(live);
  journal(live);
}

function hero(live) {
  const told = say.accuracy(live);
  text($("accuracy"), told.value === null ? "?" : say.percent(told.value));
  text($("accuracy-interval"), told.interval);
  text($("accuracy-words"), told.words);
  const pill = $("verdict");
  text(pill, told.pill);
  pill.className = `pill ${told.kind}`;
  const bit = live.noise.recent_bit;
  text($("raw"), say.percent(bit));
  text($("raw-words"), say.raw(live));
  const [range, dot, raw] = $("scale").children;
  range.hidden = !told.found;
  if (told.found) place(range, told.found.low, told.found.high);
  dot.hidden = told.value === null;
  place(dot, told.value ?? 0, 1);
  raw.hidden = bit === null;
  place(raw, bit ?? 0, 1);
  document.title = told.value === null ? `${live.model} · Fliptron` : `${say.percent(told.value)} right · ${live.model}`;
}

function noise(live) {
  text($("noise-words"), say.noise(live));
  for (const name of ["rho0", "rho1", "beta"]) {
    const number = live.noise.rounds ? live.noise[name] : null;
    const [value, bar, ends] = $(name).querySelector("dd").children;
    text(value, number && number.value !== null ? say.percent(number.value) : "?");
    text(ends, number ? say.between(number) : "");
    const [range, tick] = bar.children;
    range.hidden = !number;
    tick.hidden = !number || number.value === null;
    if (number) place(range, number.low, number.high);
    if (!tick.hidden) place(tick, number.value, 1);
  }
  text($("noise-foot"), "Bars are 95 % intervals. With a signal of 100 % feedback never lies; at 0 % it says nothing.");
}

function traffic(live, rates) {
  text($("decisions-rate"), say.count(rates.decisions));
  text($("feedback-rate"), say.count(rates.feedback));
  text($("decisions"), `${say.count(live.decisions)} in total`);
  text($("feedback"), `${say.count(live.feedback)} in total`);
  const odd = [];
  if (live.late) odd.push(`${say.count(live.late)} came too late`);
  if (live.duplicates) odd.push(`${say.count(live.duplicates)} were repeated`);
  if (live.unusable) odd.push(`${say.count(live.unusable)} came from sources in quarantine`);
  if (live.audits) odd.push(`${say.count(live.audits)} were verified`);
  const last = odd.pop();
  text($("traffic-words"), last ? `Of the feedback, ${odd.length ? `${odd.join(", ")} and ` : ""}${last}.`
    : live.feedback ? "All feedback was on time, and nothing came twice." : "Nothing has come back yet.");
}

function delay(live) {
  const { p50, p90, p99 } = live.delay;
  const [value, unit] = say.duration(p50);
  text($("delay"), value);
  text($("delay-unit"), p50 === null ? "" : `${unit}, typically`);
  text($("delay-words"), p50 === null ? "No feedback has come yet."
    : `Half of the feedback comes within ${say.lasting(p50)}, 90 % within ${say.lasting(p90)}, 99 % within ${say.lasting(p99)}.`);
  const negative = live.silence === "negative";
  const silence = negative ? "No feedback by then counts as “wrong”." : "A decision without feedback teaches nothing.";
  const share = live.noise.in_time;
  const later = negative ? "the others count as lies in the rates on this page" : "later ones are kept, and not learnt from";
  const lost = share === null ? "" : ` ${say.percent(share)} of the “right” bits come in time (F); ${later}.`;
  text($("delay-foot"), live.wait === null ? `There is no deadline: feedback is never too late. ${silence}` : `The deadline is ${say.lasting(live.wait)}. ${silence}${lost}`);
}

function exploration(live) {
  if (live.apprentice) {
    text($("exploration-title"), "Apprentice");
    text($("exploration"), say.percent(live.agreement));
    text($("exploration-words"), "is how often the model would have played your label. It plays nothing itself yet: it learns from what you play.");
    text($("exploration-foot"), "");
    return;
  }
  text($("exploration-title"), "Exploration");
  text($("exploration"), live.decisions ? say.percent(live.exploration) : "–");
  text($("exploration-words"), live.decisions
    ? "of recent decisions tried a label that was not thought best."
    : "How often a label is tried that is not thought best.");
  text($("exploration-foot"), "This is how the model finds out more, and how the noise is measured. It falls as the model grows certain.");
}

function labels(live) {
  const sorted = live.labels.filter((each) => each.share > 0).sort((a, b) => b.share - a.share);
  const shown = sorted.slice(0, 6);
  const list = $("labels");
  while (list.children.length > shown.length) list.lastChild.remove();
  shown.forEach((each, i) => {
    let row = list.children[i];
    if (!row) {
      row = make("li");
      row.append(make("span"), make("b"), make("i"));
      list.append(row);
    }
    text(row.children[0], String(each.label));
    text(row.children[1], say.percent(each.share));
    place(row.children[2], 0, each.share / (shown[0].share || 1));
  });
  const rest = sorted.slice(6);
  const unseen = live.labels.length - sorted.length;
  const words = ["Shares of the last few thousand decisions."];
  if (rest.length) words.push(`${say.many(rest.length, "more label")} make up ${say.percent(rest.reduce((sum, each) => sum + each.share, 0))}.`);
  if (unseen) words.push(`${unseen} of ${say.many(live.labels.length, "label")} ${unseen === 1 ? "was" : "were"} not played.`);
  text($("labels-words"), sorted.length ? words.join(" ") : `None yet, of ${say.many(live.labels.length, "label")}.`);
}

function sources(live, act) {
  const caught = live.sources.filter((each) => each.quarantined).length;
  $("sources-box").hidden = !live.sources.length;
  $("sources-card").classList.toggle("empty", !live.sources.length);
  text($("sources-words"), !live.sources.length
    ? "No source has been judged. Send “source” with decisions or feedback (a site, a device, a judge), and the ones whose bits do not fit are found and set aside."
    : caught
      ? `${say.many(caught, "source")} in quarantine: what ${caught === 1 ? "it sends" : "they send"} is kept, but not learnt from. Everybody else fits so far.`
      : "Nobody is in quarantine. Whoever sends bits that do not fit what the model knows is set aside here, and can be let back in.");
  const body = $("sources");
  const known = new Map([...body.children].map((row) => [row.dataset.source, row]));
  live.sources.forEach((each, i) => {
    const row = known.get(each.source) ?? sourceRow(each.source, act);
    known.delete(each.source);
    const [name, bits, evidence, action] = row.children;
    name.className = each.quarantined ? "caught" : "";
    text(name.lastChild, each.quarantined ? `in quarantine since ${new Date(1000 * each.since).toLocaleTimeString("en-GB")}: ${each.reason}` : "");
    text(bits, say.count(each.bits));
    place(evidence.firstChild.firstChild, 0, each.quarantined ? 1 : each.evidence);
    text(evidence.lastChild, each.quarantined ? "beyond the limit" : each.evidence < 0.05 ? "none" : `${Math.round(100 * Math.min(each.evidence, 1))} % of the limit`);
    evidence.className = each.quarantined || each.evidence >= 1 ? "evidence much" : "evidence";
    text(action.firstChild, each.quarantined ? "Let back in" : "Quarantine");
    action.firstChild.dataset.quarantine = each.quarantined ? "" : "yes";
    if (body.children[i] !== row) body.insertBefore(row, body.children[i] ?? null);
  });
  for (const row of known.values()) row.remove();
}

function sourceRow(source, act) {
  const row = make("tr");
  row.dataset.source = source;
  const name = make("td");
  name.append(make("b", source), make("span", "", "small"));
  const evidence = make("td", "", "evidence");
  const bar = make("i", "", "bar");
  bar.append(make("i"));
  evidence.append(bar, make("span", "", "small"));
  const action = make("td", "", "action");
  const button = make("button");
  button.type = "button";
  button.addEventListener("click", () => act(source, button.dataset.quarantine === "yes", button));
  action.append(button);
  row.append(name, make("td", "", "number"), evidence, action);
  return row;
}

function alarms(live) {
  const list = $("alarms");
  const shown = live.alarms.slice(-5).reverse();
  text($("alarms-words"), shown.length
    ? `${say.many(live.alarms.length, "alarm")} so far${shown.length < live.alarms.length ? ", of which the last five" : ""}:`
    : "None. Neither the noise nor the world seems to have changed.");
  while (list.children.length > shown.length) list.lastChild.remove();
  shown.forEach((each, i) => {
    let row = list.children[i];
    if (!row) {
      row = make("li");
      row.append(make("b"), make("span", "", "small"));
      list.append(row);
    }
    const told = say.alarm(each, live.noise.rounds);
    row.className = each.kind;
    text(row.children[0], told.title);
    text(row.children[1], told.words);
  });
}

function journal(live) {
  const [value, unit] = say.bytes(Object.values(live.journal).reduce((sum, each) => sum + each, 0)).split(" ");
  text($("journal"), value);
  text($("journal-unit"), unit);
  text($("journal-words"), `Every answer is on disk before it is sent. ${live.waiting ? `${say.many(live.waiting, "entry is", "entries are")} being written.` : "Nothing waits to be written."}`);
  text($("about"), `${live.learner} has learnt from ${say.many(live.version, "bit")}. ${live.audits ? `The truth was verified ${say.many(live.audits, "time")}.` : "Nobody ever told it the truth."}`);
}
