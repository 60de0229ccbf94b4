"use strict";
// Keyboard: any element with data-row can be marked by j/k and opened by Enter (its first link, or itself).
{
  const rows = () => [...document.querySelectorAll("[data-row]")];
  const click = (selector) => document.querySelector(selector)?.click();

  function mark(by) {
    const all = rows();
    if (!all.length) return;
    const at = all.findIndex((row) => row.classList.contains("marked"));
    const next = at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.max(0, Math.min(all.length - 1, at + by));
    all.forEach((row, index) => row.classList.toggle("marked", index === next));
    all[next].scrollIntoView({ block: "nearest" });
  }

  function toggleTheme() {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    localStorage.setItem("theme", root.dataset.theme);
  }

  const help = () => document.getElementById("keys").showModal();
  const actions = {
    j: () => mark(1),
    k: () => mark(-1),
    n: () => click("[rel=next]"),
    p: () => click("[rel=prev]"),
    t: toggleTheme,
    "?": help,
    "/": () => document.querySelector("input[type=search]")?.focus(),
    Enter: () => {
      const marked = document.querySelector("[data-row].marked");
      if (marked) (marked.querySelector("a") || marked).click();
    },
  };

  document.addEventListener("keydown", (event) => {
    const target = event.target;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (target.matches("input:not([type=radio], [type=checkbox]), select, textarea")) {
      if (event.key === "Escape") target.blur();
      return;
    }
    if (event.key === "Enter" && target.matches("a, button, summary")) return;
    const page = /^[1-9]$/.test(event.key) ? document.querySelectorAll("header nav a")[Number(event.key) - 1] : null;
    if (page) page.click();
    else if (actions[event.key]) {
      event.preventDefault();
      actions[event.key]();
    }
  });
  document.getElementById("theme").addEventListener("click", toggleTheme);
  document.getElementById("help").addEventListener("click", help);
}
