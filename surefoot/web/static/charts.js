"use strict";
// Two kinds of charts as SVG: lines with bands, and stacked bars. Text only by textContent, colours only by classes.
const Charts = (() => {
  const NS = "http://www.w3.org/2000/svg";
  const WIDTH_OF_AXIS = 46;
  const HEIGHT = 190;
  const FOOT = 20;
  const HEAD = 8;

  function make(name, attributes = {}, parent = null, text = null) {
    const node = document.createElementNS(NS, name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text !== null) node.textContent = text;
    if (parent) parent.append(node);
    return node;
  }

  function html(name, className, parent, text = null) {
    const node = document.createElement(name);
    if (className) node.className = className;
    if (text !== null) node.textContent = text;
    parent.append(node);
    return node;
  }

  // Wilson's score interval at 95%.
  function wilson(p, n) {
    if (!(n > 0)) return [0, 1];
    const z = 1.959963984540054;
    const middle = (p + (z * z) / (2 * n)) / (1 + (z * z) / n);
    const half = (z * Math.sqrt((p * (1 - p)) / n + (z * z) / (4 * n * n))) / (1 + (z * z) / n);
    return [Math.max(0, middle - half), Math.min(1, middle + half)];
  }

  function short(value) {
    const size = Math.abs(value);
    if (value === 0) return "0";
    if (size >= 1e6) return `${+(value / 1e6).toPrecision(3)}M`;
    if (size >= 1e4) return `${+(value / 1e3).toPrecision(3)}k`;
    return size < 1e-3 ? value.toExponential(1) : String(+value.toPrecision(3));
  }

  function ticks(low, high, count) {
    if (!(high > low)) return [low];
    const rough = (high - low) / count;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough);
    const found = [];
    for (let t = Math.ceil(low / step) * step; t <= high + step * 1e-6; t += step) found.push(t);
    return found;
  }

  class Chart {
    // options: {title, note, stacked, range: [low, high] | null, unit: "%" | ""}
    constructor(parent, options) {
      this.options = options;
      this.off = new Set();
      this.panel = html("section", "panel chart", parent);
      html("h2", "", this.panel, options.title);
      if (options.note) html("p", "dim note", this.panel, options.note);
      this.legend = html("div", "legend", this.panel);
      this.box = html("div", "plot", this.panel);
      this.tip = html("div", "tip dim", this.panel, "\u00a0");
      this.series = [];
      new ResizeObserver(() => this.draw()).observe(this.box);
    }

    // series: [{name, colour: 0..7, dashed, points: [[x, y, low, high], ...]}]
    show(series) {
      this.series = series.filter((s) => s.points.length);
      this.panel.hidden = !this.series.length;
      this.legend.replaceChildren();
      for (const one of this.series.length > 1 || this.options.stacked ? this.series : []) {
        const entry = html("button", `entry${this.off.has(one.name) ? " off" : ""}`, this.legend);
        entry.type = "button";
        html("span", `swatch s${one.colour % 8}${one.dashed ? " dashed" : ""}`, entry);
        html("span", "", entry, one.name);
        entry.addEventListener("click", () => {
          if (!this.off.delete(one.name)) this.off.add(one.name);
          this.show(series);
        });
      }
      this.draw();
    }

    format(value) {
      if (value === null || value === undefined) return "–";
      return this.options.unit === "%" ? `${+(value * 100).toPrecision(3)}%` : short(value) + (this.options.unit || "");
    }

    draw() {
      const width = this.box.clientWidth;
      if (!width || !this.series.length) return;
      const shown = this.series.filter((s) => !this.off.has(s.name));
      const stacks = this.options.stacked ? stack(shown) : null;
      const ys = stacks ? [0, ...stacks.flatMap((s) => s.points.map((p) => p[3]))] : values(shown);
      let [low, high] = this.options.range || [Math.min(...minmax(ys)), Math.max(...minmax(ys))];
      if (!Number.isFinite(low)) [low, high] = [0, 1];
      if (low === high) [low, high] = low === 0 ? [0, 1] : [low - Math.abs(low) * 0.1, high + Math.abs(high) * 0.1];
      const xs = minmax(shown.flatMap((s) => s.points.map((p) => p[0])));
      const bar = stacks ? barWidth(shown) : 0;
      const first = Number.isFinite(xs[0]) ? xs[0] : 0;
      const last = Number.isFinite(xs[1]) ? xs[1] + bar : 1;
      const inner = width - WIDTH_OF_AXIS - 8;
      const x = (v) => WIDTH_OF_AXIS + (last > first ? ((v - first) / (last - first)) * inner : inner / 2);
      const y = (v) => HEAD + (1 - (v - low) / (high - low)) * (HEIGHT - FOOT - HEAD);
      const svg = make("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT, role: "img", "aria-label": this.options.title });
      for (const t of ticks(low, high, 4)) {
        make("line", { x1: WIDTH_OF_AXIS, x2: width - 8, y1: y(t), y2: y(t), class: "grid" }, svg);
        make("text", { x: WIDTH_OF_AXIS - 5, y: y(t) + 4, class: "axis end" }, svg, this.format(+t.toPrecision(12)));
      }
      for (const t of ticks(first, last, Math.max(2, Math.floor(inner / 80))).filter(Number.isInteger)) {
        make("text", { x: x(t), y: HEIGHT - 4, class: "axis middle" }, svg, String(t));
      }
      if (stacks) {
        for (const one of stacks)
          for (const [at, , from, to] of one.points) {
            const w = Math.max(1, x(at + bar) - x(at) - 1);
            if (to > from) make("rect", { x: x(at), y: y(to), width: w, height: Math.max(0, y(from) - y(to)), class: `bar s${one.colour % 8}` }, svg);
          }
      } else for (const one of shown) lines(svg, one, x, y);
      const cross = make("line", { y1: HEAD, y2: HEIGHT - FOOT, class: "cross", visibility: "hidden" }, svg);
      svg.addEventListener("pointermove", (event) => this.hover(event, svg, shown, cross, x, first, last, inner, bar));
      svg.addEventListener("pointerleave", () => {
        cross.setAttribute("visibility", "hidden");
        this.tip.textContent = "\u00a0";
      });
      this.box.replaceChildren(svg);
    }

    hover(event, svg, shown, cross, x, first, last, inner, bar) {
      const at = first + ((event.clientX - svg.getBoundingClientRect().left - WIDTH_OF_AXIS) / inner) * (last - first) - bar / 2;
      const all = [...new Set(shown.flatMap((s) => s.points.map((p) => p[0])))];
      if (!all.length) return;
      const nearest = all.reduce((best, v) => (Math.abs(v - at) < Math.abs(best - at) ? v : best), all[0]);
      for (const key of ["x1", "x2"]) cross.setAttribute(key, x(nearest + bar / 2));
      cross.setAttribute("visibility", "visible");
      const parts = shown.flatMap((s) => s.points.filter((p) => p[0] === nearest).map((p) => this.told(s, p)));
      this.tip.textContent = `step ${nearest}: ${parts.slice(0, 10).join(", ")}${parts.length > 10 ? ", …" : ""}`;
    }

    told(series, [, value, low, high]) {
      const band = !this.options.stacked && low !== undefined ? ` [${this.format(low)}–${this.format(high)}]` : "";
      return `${this.series.length > 1 || this.options.stacked ? `${series.name} ` : ""}${this.format(value)}${band}`;
    }
  }

  function lines(svg, one, x, y) {
    const known = one.points.filter((p) => p[1] !== null && p[1] !== undefined);
    const banded = known.filter((p) => p[2] !== undefined);
    if (banded.length > 1) {
      const up = banded.map((p) => `${x(p[0])},${y(p[3])}`);
      const down = banded.toReversed().map((p) => `${x(p[0])},${y(p[2])}`);
      make("polygon", { points: [...up, ...down].join(" "), class: `band s${one.colour % 8}` }, svg);
    }
    make("polyline", { points: known.map((p) => `${x(p[0])},${y(p[1])}`).join(" "), class: `line s${one.colour % 8}${one.dashed ? " dashed" : ""}` }, svg);
    if (known.length <= 30) for (const p of known) make("circle", { cx: x(p[0]), cy: y(p[1]), r: 2.2, class: `dot s${one.colour % 8}` }, svg);
  }

  function values(shown) {
    return shown.flatMap((s) => s.points.flatMap((p) => p.slice(1))).filter((v) => v !== null && v !== undefined);
  }

  function minmax(list) {
    let low = Infinity;
    let high = -Infinity;
    for (const v of list) {
      if (v < low) low = v;
      if (v > high) high = v;
    }
    return [low, high];
  }

  function stack(shown) {
    const tops = new Map();
    return shown.map((one) => ({
      ...one,
      points: one.points.map(([at, value]) => {
        const from = tops.get(at) || 0;
        tops.set(at, from + (value || 0));
        return [at, value, from, from + (value || 0)];
      }),
    }));
  }

  function barWidth(shown) {
    const all = [...new Set(shown.flatMap((s) => s.points.map((p) => p[0])))].sort((a, b) => a - b);
    let least = Infinity;
    for (let i = 1; i < all.length; i++) least = Math.min(least, all[i] - all[i - 1]);
    return Number.isFinite(least) ? least : 1;
  }

  return { Chart, wilson, html, short };
})();
