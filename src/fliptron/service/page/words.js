// How numbers are said: pure functions from what the service sends to words.

const NARROW = "\u202f";

export function percent(share, digits = 1) {
  if (share === null || share === undefined) return "–";
  const shown = (100 * share).toFixed(digits);
  return `${shown === "-0.0" ? "0.0" : shown}${NARROW}%`;
}

export function between(number) {
  return `${percent(number.low)} to ${percent(number.high)}`;
}

export function count(number) {
  return Math.round(number).toLocaleString("en");
}

export function many(number, one, more = `${one}s`) {
  return `${count(number)} ${number === 1 ? one : more}`;
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined) return ["–", ""];
  for (const [size, one, more] of [[86400, "day", "days"], [3600, "hour", "hours"], [60, "minute", "minutes"]]) {
    if (seconds >= 1.5 * size) return [trim(seconds / size), seconds / size === 1 ? one : more];
  }
  return seconds >= 0.95 ? [trim(seconds), seconds === 1 ? "second" : "seconds"] : [count(1000 * seconds), "milliseconds"];
}

export function lasting(seconds) {
  return duration(seconds).join(" ");
}

function trim(number) {
  return number >= 9.95 ? String(Math.round(number)) : number.toFixed(1).replace(/\.0$/, "");
}

export function bytes(number) {
  for (const [size, unit] of [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"]]) {
    if (number >= size) return `${trim(number / size)} ${unit}`;
  }
  return `${number} bytes`;
}

// Sentences that the service makes begin without a capital and end without a stop.
export function sentence(text) {
  return text ? `${text[0].toUpperCase()}${text.slice(1)}${/[.?!]$/.test(text) ? "" : "."}` : "";
}

// The estimator's reasons, for somebody who has not read how it works.
const PLAIN = [
  [/^the mean bit is level.*/, "the decisions that the model is surest of agree with each other, and over time"],
  [/^right and wrong labels were audited$/, "verified feedback shows it directly"],
  [/^few rounds so far/, "there is little feedback so far"],
  [/^the surest rounds' bits still get better with time/, "the model is still getting better"],
  [/^the mean bit still rises where the learner is surest/, "the model is still growing surer"],
  [/^either the noise is extreme or the learner is never sure/, "either the feedback is extremely noisy or the model is never sure"],
  [/^few sure or explored rounds so far/, "few decisions were sure, or few were explored, so far"],
  [/: the noise is at most what is said, and perhaps less$/, ", and the feedback may lie less than it seems"],
  [/^flips seem to depend on the label.*/, "the feedback seems to lie more about some labels than about others, and these are averages"],
  [/^flips seem to depend on the example.*/, "the feedback seems to lie more in some cases than in others, and these are averages"],
  [/^flips seem to depend on the time.*/, "the feedback seems to lie differently as time goes by, and these are averages"],
  [/^only ([\d,]+) rounds played another label than the greedy one; (\d+) are needed$/, "only $1 decisions tried another label than the one thought best; $2 are needed"],
  [/^only ([\d,]+) sure rounds played the label held best; (\d+) are needed$/, "only $1 decisions were sure; $2 are needed"],
  [/^the surest rounds' bits are no better than chance.*/, "even where the model is surest, the feedback is no better than chance; it needs longer to learn"],
];

export function plain(reason) {
  return PLAIN.reduce((words, [pattern, better]) => words.replace(pattern, better), reason);
}

// What the hero says: number, interval, sentences, and the kind of the verdict.
export function accuracy(live) {
  const { noise } = live;
  const found = noise.recent;
  const settled = noise.verdict === "identified";
  if (!noise.rounds) {
    return {
      kind: "none", pill: "no feedback yet", value: null, found: null, interval: "",
      words: live.decisions
        ? `${many(live.decisions, "decision")} so far, and no feedback to learn from. As soon as feedback is sent to /v1/models/${live.model}/feedback, this number appears.`
        : `Nobody has asked yet. Send a record to /v1/models/${live.model}/decide, play the label that comes back, and send what happened to /feedback.`,
    };
  }
  if (!noise.accuracy) {
    return { kind: "none", pill: "not estimated", value: null, found: null, interval: "", words: unable(live) };
  }
  if (!found || noise.verdict === "not identified") {
    const last = live.alarms.at(-1);
    const since = last ? `The world changed ${many(Math.max(noise.rounds - last.round, 0), "bit")} ago, and everything is counted anew. ` : "";
    const least = noise.accuracy;
    const range = least && (least.low > 0.005 || least.high < 0.995)
      ? `All that is certain: it lies between ${percent(least.low, 0)} and ${percent(least.high, 0)}.` : "";
    return {
      kind: "none", pill: "not known yet", value: null, found: least, interval: range,
      words: `${since}${sentence(plain(noise.reason))} More feedback helps, and so do a few hundred verified bits (“verified”: true).`,
    };
  }
  const interval = `between ${percent(found.low)} and ${percent(found.high)}, with 95${NARROW}% confidence`;
  const words = `Of 100 recent decisions, about ${Math.round(100 * found.value)} played the label that is truly right.`;
  return {
    kind: settled ? "good" : "weak", pill: settled ? "identified" : "preliminary", value: found.value, found, interval,
    words: settled ? words : `${words} Do not rely on it yet: ${plain(noise.reason)}.`,
  };
}

function unable(live) {
  return `A ${live.learner} learns, but does not estimate the noise. Serve a Fliptron to see true accuracy here, or download all rounds and run fliptron estimate on them.`;
}

export function raw(live) {
  const { recent, recent_bit: bit } = live.noise;
  if (bit === null) return "What a dashboard without Fliptron would show: how often the feedback says “right”.";
  if (!recent) return "is how often the feedback says “right”. It is not the accuracy: feedback lies in both directions.";
  const gap = Math.round(100 * (recent.value - bit));
  if (Math.abs(gap) < 2) return "is how often the feedback says “right”. Here it is about the truth, by luck or because it hardly lies.";
  return gap > 0
    ? `is how often the feedback says “right”. Whoever takes that for accuracy is ${gap} points too low: most of the rest was right, and the feedback lied.`
    : `is how often the feedback says “right”. Whoever takes that for accuracy is ${-gap} points too high: wrong labels are praised too.`;
}

export function noise(live) {
  const { verdict, beta } = live.noise;
  const reason = plain(live.noise.reason);
  if (!live.noise.rounds) return "Nothing is known of it before the first feedback.";
  if (!beta) return unable(live);
  if (verdict === "not identified") return `Not known yet. ${sentence(reason)}`;
  const strength = beta.value < 0.15 ? "It is very noisy, and still enough to learn from." : beta.value > 0.8 ? "It rarely lies." : "";
  return verdict === "identified"
    ? `Known, and measured from the feedback alone: ${reason}. ${strength}`
    : `A first idea: ${reason}. ${strength}`;
}

export function alarm(each, learnt) {
  const what = each.kind === "noise"
    ? ["The feedback lies differently than before", "The rates above count from here on."]
    : each.kind === "lost"
    ? ["A label had been forgotten", "It was never shown, and another stood in for it; the model learns both anew from here on."]
    : ["The world has changed", "Labels that had been right no longer were; the model learns anew from here on."];
  return { title: what[0], words: `${what[1]} After ${many(each.round, "bit")}, ${many(Math.max(learnt - each.round, 0), "bit")} ago.` };
}
