"""The style sheet of `report.html`."""

from __future__ import annotations

CSS = """
:root{--ink:#1c2430;--dim:#5c6675;--paper:#fff;--soft:#f3f5f8;--line:#d9dee6;--good:#1a7f4b;--bad:#c0352b;
--s0:#7a8699;--s1:#c98500;--s2:#0b7fab;--s3:#8a4fbf;--s4:#b0446f}
@media(prefers-color-scheme:dark){:root{--ink:#e6eaf0;--dim:#9aa5b5;--paper:#12161c;--soft:#1b212a;--line:#323b48;
--good:#4cc38a;--bad:#ff7b72;--s0:#98a4b8;--s1:#e8a93a;--s2:#4db8e0;--s3:#b98ae6;--s4:#e07aa3}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,sans-serif}
main{max-width:1080px;margin:0 auto;padding:1rem}
h1{font-size:1.6rem;margin:.5rem 0}h2{font-size:1.2rem;margin:2rem 0 .5rem}
.findings{padding-left:1.2rem}.findings li{margin:.25rem 0}
.note,small,.role{color:var(--dim);font-size:.85rem}
.legend{display:flex;flex-wrap:wrap;gap:.3rem 1.2rem;margin:.5rem 0}
.legend i,h4 i{display:inline-block;width:.7em;height:.7em;border-radius:50%;background:currentColor;margin-right:.4em}
.chance-key{color:var(--dim)}.chance-key::before{content:"";display:inline-block;height:1em;margin-right:.4em;
border-left:2px dashed var(--dim);vertical-align:-.15em}
.stage-0{color:var(--s0)}.stage-1{color:var(--s1)}.stage-2{color:var(--s2)}.stage-3{color:var(--s3)}.stage-4{color:var(--s4)}
.plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,400px),1fr));gap:1rem}
figure{margin:0;max-width:560px}figcaption{font-weight:600}
.plot{width:100%;height:auto;display:block}
.plot text{font:11.5px system-ui,sans-serif;fill:var(--ink)}.plot .mean{font-weight:700}
.plot .tick{text-anchor:middle;fill:var(--dim);font-size:10px}
.plot .grid{stroke:var(--line);stroke-width:1}
.plot .chance{stroke:var(--dim);stroke-width:1.5;stroke-dasharray:3 2}
.plot .whisker{stroke:currentColor;stroke-width:2.5;stroke-linecap:round;opacity:.55}.plot circle{fill:currentColor}
.plot .curve{fill:none;stroke:currentColor;stroke-width:2}.plot .band{fill:currentColor;opacity:.15}
h3{font-size:1rem;margin:1rem 0 0}.wide{overflow-x:auto}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.9rem;width:100%;margin-top:1rem}
th,td{text-align:left;vertical-align:top;padding:.2rem .6rem;white-space:nowrap}
thead th{border-bottom:2px solid var(--line)}tr.first>*{border-top:1px solid var(--line)}
td.better{color:var(--good)}td.worse{color:var(--bad)}
td.example{white-space:normal;min-width:12rem;width:60%}
details{margin:.3rem 0}summary{cursor:pointer;overflow-wrap:anywhere}
.domain>summary{font-weight:600}.task{margin-left:.8rem;border-left:3px solid var(--line);padding-left:.6rem}
pre{background:var(--soft);padding:.5rem .6rem;margin:.2rem 0 .5rem;border-radius:6px;white-space:pre-wrap;
overflow-wrap:anywhere;font:13px/1.45 ui-monospace,monospace;color:var(--ink)}
.columns{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,240px),1fr));gap:.2rem 1rem}
h4{margin:.4rem 0}.sample{color:var(--ink)}.sample.right b{color:var(--good)}.sample.wrong b{color:var(--bad)}
.tally{white-space:nowrap}.tally i{display:inline-block;width:.6em;height:.6em;margin-right:1px;border-radius:2px;
background:var(--line)}.tally .right{background:var(--good)}.tally .wrong{background:var(--bad);opacity:.65}
dt{font-weight:600}dd{margin:0 0 .4rem 0;color:var(--dim)}
""".strip()
