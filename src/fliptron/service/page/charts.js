// The two charts: true accuracy over time, and traffic.
/* global uPlot */
import { percent } from "./words.js";

const FONT = "12px system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";
const MOST = 5000;

function color(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function axes(values) {
  const plain = { stroke: color("--quiet"), font: FONT, grid: { stroke: color("--line"), width: 1 }, ticks: { show: false } };
  const hours = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
  const times = (plot, ticks) => ticks.map((tick) => {
    const step = ticks.length > 1 ? ticks[1] - ticks[0] : 60;
    if (step >= 86400) return new Date(1000 * tick).toLocaleDateString("en-GB", { day: "numeric", month: "short" });
    return new Date(1000 * tick).toLocaleTimeString("en-GB", step < 60 ? { ...hours, second: "2-digit" } : hours);
  });
  return [
    { ...plain, grid: { show: false }, values: times, size: 32, gap: 8, space: 84 },
    { ...plain, values, size: 46, gap: 6 },
  ];
}

class Chart {
  constructor(box, height) {
    this.box = box;
    this.height = height;
    this.data = [];
    this.plot = null;
    new ResizeObserver(() => this.resize()).observe(box);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.rebuild());
  }

  rebuild() {
    this.plot?.destroy();
    this.plot = null;
    this.draw();
  }

  resize() {
    const width = this.box.clientWidth;
    if (this.plot && width && width !== this.plot.width) this.plot.setSize({ width, height: this.height() });
  }

  draw() {
    const width = this.box.clientWidth;
    if (!width || !this.data.length || !this.data[0].length) return;
    if (!this.plot) this.plot = new uPlot({ width, height: this.height(), ...this.options() }, this.data, this.box);
    else this.plot.setData(this.data);
  }
}

export class Accuracy extends Chart {
  constructor(box, readout) {
    super(box, () => (box.clientWidth < 480 ? 220 : 320));
    this.readout = readout;
    this.range = 600;
    this.clear();
  }

  clear() {
    this.data = [[], [], [], [], []];
    this.rebuild();
  }

  // Points of the history: [time, accuracy, low, high, bit].
  fill(points) {
    this.data = [[], [], [], [], []];
    for (const point of points) this.push(point);
    this.rebuild();
  }

  add(point) {
    if (this.push(point)) this.draw();
  }

  push(point) {
    const [times] = this.data;
    if (times.length && point[0] <= times[times.length - 1]) return false;
    point.forEach((value, i) => this.data[i].push(value));
    if (times.length > MOST) this.data = this.data.map((column) => column.filter((_, i) => i > MOST / 2 || i % 2));
    return true;
  }

  show(range) {
    this.range = range;
    this.rebuild();
  }

  span() {
    const [times] = this.data;
    const last = times[times.length - 1] ?? Date.now() / 1000;
    const first = this.range ? Math.max(last - this.range, times[0] ?? 0) : times[0] ?? last;
    return [Math.min(first, last - 20), last];
  }

  options() {
    const accent = color("--true");
    return {
      legend: { show: false },
      padding: [10, 30, 0, 0],
      cursor: { y: false, drag: { x: false, y: false }, points: { size: 7 } },
      scales: { x: { range: () => this.span() }, y: { range: [0, 1] } },
      axes: axes((plot, ticks) => ticks.map((tick) => percent(tick, 0))),
      series: [
        {},
        { stroke: accent, width: 2.5, points: { show: false } },
        { stroke: "transparent", width: 0, points: { show: false } },
        { stroke: "transparent", width: 0, points: { show: false } },
        { stroke: color("--raw"), width: 2, dash: [5, 4], points: { show: false } },
      ],
      bands: [{ series: [3, 2], fill: color("--true-band") }],
      hooks: { setCursor: [(plot) => this.tell(plot)] },
    };
  }

  tell(plot) {
    const at = plot.cursor.idx;
    if (at === null || at === undefined) {
      this.readout.textContent = "";
      return;
    }
    const [time, value, low, high, bit] = this.data.map((column) => column[at]);
    const when = new Date(1000 * time).toLocaleString("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", second: "2-digit" });
    const known = value === null ? "true accuracy not known" : `true accuracy ${percent(value)} (${percent(low)} to ${percent(high)})`;
    this.readout.textContent = `${when}: ${known}, raw feedback ${percent(bit)}`;
  }
}

export class Traffic extends Chart {
  constructor(box) {
    super(box, () => 160);
    this.clear();
  }

  clear() {
    this.data = [[], [], []];
    this.rebuild();
  }

  add(time, decisions, feedback) {
    const [times] = this.data;
    if (times.length && time <= times[times.length - 1]) return;
    [time, decisions, feedback].forEach((value, i) => this.data[i].push(value));
    this.data = this.data.map((column) => column.slice(-120));
    this.draw();
  }

  options() {
    return {
      legend: { show: false },
      padding: [8, 30, 0, 0],
      cursor: { show: false },
      scales: { x: { range: (plot, low, high) => [Math.min(low, high - 20), high] }, y: { range: (plot, low, high) => [0, Math.max(1.15 * high, 5)] } },
      axes: axes((plot, ticks) => ticks.map((tick) => (tick >= 1000 ? `${tick / 1000}k` : String(tick)))),
      series: [
        {},
        { stroke: color("--decisions"), width: 2, points: { show: false } },
        { stroke: color("--feedback"), width: 2, points: { show: false } },
      ],
    };
  }
}
