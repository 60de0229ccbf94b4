"use strict";
// From metrics lines to what charts show: at most BUCKETS points, each pooled from the steps that it stands for.
const Series = (() => {
  const BUCKETS = 150;

  function pool(lines) {
    const last = lines.length ? lines[lines.length - 1].step : 1;
    const width = Math.max(1, Math.ceil(last / BUCKETS));
    const found = new Map();
    for (const line of lines) {
      const at = width === 1 ? line.step : Math.floor(line.step / width) * width;
      if (!found.has(at)) found.set(at, []);
      found.get(at).push(line);
    }
    return [...found].map(([step, some]) => ({ step, lines: some }));
  }

  function mean(some, pick, weigh = () => 1) {
    let sum = 0;
    let weight = 0;
    for (const line of some) {
      const value = pick(line);
      if (value === null || value === undefined || Number.isNaN(value)) continue;
      const w = weigh(line);
      sum += value * w;
      weight += w;
    }
    return weight > 0 ? sum / weight : null;
  }

  function line(pools, pick, weigh) {
    return pools.map((p) => [p.step, mean(p.lines, pick, weigh)]).filter((p) => p[1] !== null);
  }

  function rate(pools, pick, count) {
    return pools.flatMap(({ step, lines }) => {
      const n = lines.reduce((sum, one) => sum + (count(one) || 0), 0);
      const p = mean(lines, pick, count);
      return p === null ? [] : [[step, p, ...Charts.wilson(p, n)]];
    });
  }

  const domain = (name, place) => (one) => one.domains[name]?.[place] ?? null;

  function domains(lines) {
    const counts = new Map();
    for (const one of lines) for (const [name, part] of Object.entries(one.domains)) counts.set(name, (counts.get(name) || 0) + part[5]);
    return [...counts].sort((a, b) => b[1] - a[1]).map(([name]) => name);
  }

  return { pool, mean, line, rate, domain, domains };
})();

// Follows a run: what is new is fetched every other second while the page is seen.
class Follower {
  constructor(base, changed) {
    this.base = base;
    this.changed = changed;
    this.lines = [];
    this.events = [];
    this.cursors = { metrics: "", events: "" };
    this.running = false;
    this.next();
  }

  async next() {
    let more = false;
    if (!document.hidden || !this.lines.length) {
      try {
        more = await this.fetch();
      } catch {
        this.lost = true;
        this.changed(this, false);
      }
    }
    setTimeout(() => this.next(), more ? 0 : 2000);
  }

  async fetch() {
    const answer = await fetch(`${this.base}/data?${new URLSearchParams(this.cursors)}`);
    const news = await answer.json();
    const before = this.running;
    this.running = news.running;
    this.lost = false;
    if (news.metrics.reset) this.lines = [];
    if (news.events.reset) this.events = [];
    this.lines.push(...news.metrics.lines);
    this.events.push(...news.events.lines);
    for (const name of ["metrics", "events"]) this.cursors[name] = news[name].cursor;
    const fresh = news.metrics.reset || news.events.reset || news.metrics.lines.length > 0 || news.events.lines.length > 0;
    const more = news.metrics.more || news.events.more;
    if (!more) this.changed(this, fresh || before !== this.running);
    return more;
  }
}
