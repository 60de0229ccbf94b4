"use strict";
{
  const root = document.getElementById("charts");
  const names = JSON.parse(root.dataset.names);
  const rates = { range: [0, 1], unit: "%" };
  const all = (pick, weigh) => (pools) => Series.line(pools, pick, weigh);
  const learner = (key) => all((l) => l.learner[key] ?? null);
  const made = new Map();
  const show = (title, options, points) => {
    if (!made.has(title)) made.set(title, new Charts.Chart(root, { title, ...options }));
    made.get(title).show(followers.map((f, i) => ({ name: names[i] + (names[0] === names[1] ? ` (${i + 1})` : ""), colour: i, dashed: i > 0, points: points(Series.pool(f.lines)) })));
  };

  function draw() {
    if (followers.length < 2) return;
    show("Pass rate, all domains", rates, (pools) => Series.rate(pools, (l) => l.pass_rate, (l) => l.n));
    for (const name of Series.domains(followers.flatMap((f) => f.lines)).slice(0, 24)) {
      const at = Series.domain;
      show(`Pass rate: ${name}`, rates, (pools) => Series.rate(pools, at(name, 1), at(name, 2)));
    }
    show("Reward", {}, all((l) => l.reward, (l) => l.n));
    show("Entropy", {}, learner("entropy"));
    show("KL to the reference", {}, learner("kl"));
    show("Log-prob gap", {}, learner("gap/mean_abs"));
    show("Tokens an answer", {}, all((l) => l.answer_tokens));
    show("Groups without signal", rates, all((l) => l.degenerate));
    show("Seconds a step", {}, all((l) => ["sample", "grade", "learn", "record"].reduce((t, k) => t + (l.timing[k] || 0), 0)));
  }

  const followers = [];
  for (const base of root.dataset.bases.split(" ")) followers.push(new Follower(base, (_, fresh) => fresh && draw()));
}
