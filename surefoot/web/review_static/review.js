"use strict";
// Keys a, r, u decide; m goes to the note; b goes back to what was judged last.
{
  const bar = document.getElementById("decide");
  const said = document.getElementById("said");
  let busy = false;

  async function decide(decision) {
    if (busy) return;
    busy = true;
    const body = {
      position: Number(bar.dataset.position),
      decision,
      note: document.getElementById("note").value,
      pattern: decision === "reject" ? String(getSelection()) : "",
    };
    try {
      const answer = await fetch("/decide", {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify(body),
      });
      if (!answer.ok) throw new Error((await answer.json()).error || `error ${answer.status}`);
      location.assign("/");
    } catch (failed) {
      said.textContent = `not saved: ${failed.message}`;
      busy = false;
    }
  }

  bar.querySelectorAll("button[data-decision]").forEach((button) => {
    button.addEventListener("mousedown", (event) => event.preventDefault()); // keeps the selection
    button.addEventListener("click", () => decide(button.dataset.decision));
  });
  const keys = { a: "accept", r: "reject", u: "unsure" };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
    if (event.target.matches("input, textarea, select") || document.querySelector("dialog[open]")) return;
    if (keys[event.key]) decide(keys[event.key]);
    else if (event.key === "b") document.getElementById("back")?.click();
    else if (event.key === "m") {
      event.preventDefault();
      document.getElementById("note").focus();
    }
  });
}
