"use strict";
{
  const root = document.getElementById("charts");
  const MOST = 8;
  const chart = (title, options = {}) => new Charts.Chart(root, { title, ...options });
  const charts = {
    pass: chart("Pass rate by domain", { range: [0, 1], unit: "%" }),
    reward: chart("Reward by domain"),
    all: chart("Pass rate and reward, all domains"),
    shares: chart("Sampling shares", { stacked: true, range: [0, 1], unit: "%" }),
    zero: chart("Groups without signal (zero variance)", { range: [0, 1], unit: "%" }),
    entropy: chart("Entropy", { note: "nats a token" }),
    kl: chart("KL to the reference"),
    length: chart("Answer length by domain", { note: "tokens" }),
    truncated: chart("Cut off at the token limit", { range: [0, 1], unit: "%" }),
    gap: chart("Log-prob gap of engine and learner", { note: "mean of the absolute difference a token" }),
    loss: chart("Gradient norm"),
    time: chart("Time of a step", { stacked: true, unit: " s" }),
    speed: chart("Tokens sampled a second"),
    outcomes: chart("Sandbox outcomes", { stacked: true }),
    findings: chart("Integrity findings", { stacked: true }),
    ungradable: chart("Ungradable rollouts a step"),
  };
  let chosen = null;

  function domainsShown(lines) {
    const all = Series.domains(lines);
    const box = document.querySelector("#domain-choice .checks");
    document.getElementById("domain-choice").hidden = all.length < 2;
    if (chosen === null && all.length) chosen = new Set(all.slice(0, MOST));
    if (box.childElementCount !== all.length) {
      box.replaceChildren();
      for (const name of all) {
        const label = Charts.html("label", "", box);
        const check = Charts.html("input", "", label);
        check.type = "checkbox";
        check.checked = chosen.has(name);
        Charts.html("span", "", label, name);
        check.addEventListener("change", () => {
          if (check.checked) chosen.add(name);
          else chosen.delete(name);
          draw(follower);
        });
      }
    }
    return [...all].sort().filter((name) => chosen.has(name));
  }

  function draw({ lines, events }) {
    const pools = Series.pool(lines);
    const names = lines.length ? domainsShown(lines) : [];
    const each = (points) => names.map((name, i) => ({ name, colour: i, points: points(name) }));
    const one = (pick, weigh) => [{ name: "all", colour: 0, points: Series.line(pools, pick, weigh) }];
    const learner = (key) => one((line) => line.learner[key] ?? null);
    const at = Series.domain;
    charts.pass.show(each((name) => Series.rate(pools, at(name, 1), at(name, 2))));
    charts.reward.show(each((name) => Series.line(pools, at(name, 0), at(name, 2))));
    charts.all.show([
      { name: "pass rate", colour: 0, points: Series.rate(pools, (l) => l.pass_rate, (l) => l.n) },
      { name: "reward", colour: 1, points: Series.line(pools, (l) => l.reward, (l) => l.n) },
    ]);
    charts.shares.show(each((name) => shares(pools, name)));
    charts.zero.show([
      ...one((l) => l.degenerate),
      ...(names.length > 1 ? each((name) => Series.line(pools, at(name, 3))).map((s) => ({ ...s, colour: s.colour + 1 })) : []),
    ]);
    charts.entropy.show(learner("entropy"));
    charts.kl.show(learner("kl"));
    charts.length.show(each((name) => Series.line(pools, at(name, 4), at(name, 5))));
    charts.truncated.show(one((l) => l.truncated));
    charts.gap.show(learner("gap/mean_abs"));
    charts.loss.show(learner("grad_norm"));
    const stages = ["sample", "grade", "learn", "record"];
    charts.time.show(stages.map((name, i) => ({ name, colour: i, points: Series.line(pools, (l) => l.timing[name] ?? null) })));
    charts.speed.show(one((l) => l.timing.tokens_per_second ?? null));
    charts.ungradable.show(lines.some((l) => l.ungradable) ? one((l) => l.ungradable) : []);
    tiles(lines);
    table(events);
  }

  function shares(pools, name) {
    return pools.map(({ step, lines }) => {
      const all = lines.reduce((sum, l) => sum + l.rollouts, 0);
      return [step, all ? lines.reduce((sum, l) => sum + (l.domains[name]?.[5] || 0), 0) / all : 0];
    });
  }

  function tiles(lines) {
    const box = document.getElementById("tiles");
    const recent = lines.slice(-10);
    const percent = (v) => (v === null ? "–" : `${(v * 100).toFixed(1)}%`);
    const plain = (v) => (v === null ? "–" : Charts.short(v));
    const sum = (pick) => lines.reduce((total, l) => total + (pick(l) || 0), 0);
    const m = (pick, weigh) => Series.mean(recent, pick, weigh);
    const told = [
      ["pass rate, last 10 steps", percent(m((l) => l.pass_rate, (l) => l.n))],
      ["reward", plain(m((l) => l.reward, (l) => l.n))],
      ["groups without signal", percent(m((l) => l.degenerate))],
      ["tokens an answer", plain(m((l) => l.answer_tokens))],
      ["seconds a step", plain(m((l) => ["sample", "grade", "learn", "record"].reduce((t, k) => t + (l.timing[k] || 0), 0)))],
      ["rollouts in all", sum((l) => l.rollouts).toLocaleString("en")],
      ["ungradable", sum((l) => l.ungradable).toLocaleString("en")],
      ["quarantined", sum((l) => l.quarantined).toLocaleString("en")],
    ];
    box.replaceChildren();
    for (const [name, value] of lines.length ? told : []) {
      const tile = Charts.html("div", "panel tile", box);
      Charts.html("div", "dim", tile, name);
      Charts.html("b", "", tile, value);
    }
  }

  function table(events) {
    const body = document.querySelector("#events tbody");
    document.getElementById("no-events").hidden = events.length > 0;
    body.replaceChildren();
    for (const event of events.slice(-100).toReversed()) {
      const row = Charts.html("tr", "", body);
      Charts.html("td", "dim", row, String(event.time || "").slice(0, 19).replace("T", " "));
      Charts.html("td", "", row, String(event.event || ""));
      const { time, event: kind, text, ...rest } = event;
      const details = Object.entries(rest).map(([k, v]) => `${k} ${typeof v === "number" ? Charts.short(v) : JSON.stringify(v)}`);
      Charts.html("td", "", row, text ? String(text) : details.join(", "));
    }
  }

  async function counts() {
    const answer = await fetch(`${root.dataset.base}/counts`);
    if (!answer.ok) return;
    const found = await answer.json();
    for (const name of ["outcomes", "findings"]) {
      const kinds = [...new Set(found[name].map((row) => row[1]))];
      charts[name].show(kinds.map((kind, i) => ({ name: kind, colour: i, points: found[name].filter((row) => row[1] === kind).map((row) => [row[0], row[2]]) })));
    }
  }

  function changed(run, fresh) {
    const state = document.getElementById("state");
    state.textContent = run.lost ? "the viewer was ended" : run.running ? "running" : "not running";
    state.className = run.lost ? "bad" : run.running ? "good" : "dim";
    if (run.lines.length) document.getElementById("step").textContent = run.lines[run.lines.length - 1].step;
    if (fresh) {
      draw(run);
      setTimeout(() => counts().catch(() => {}), 1200); // the index follows a second behind
    }
  }

  for (const one of Object.values(charts)) one.show([]);
  const follower = new Follower(root.dataset.base, changed);
  counts().catch(() => {});
}
