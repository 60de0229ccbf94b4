"use strict";
// Search while typing: the same page is fetched, and its results take the place of the old ones.
{
  const form = document.getElementById("filters");
  let timer = 0;
  let newest = 0;

  async function refresh() {
    const wanted = new URLSearchParams([...new FormData(form)].filter(([name, value]) => value && !(name === "order" && value === "newest")));
    const address = `${form.getAttribute("action")}?${wanted}`;
    const mine = ++newest;
    const answer = await fetch(address);
    if (!answer.ok || mine !== newest) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html"); // scripts in it never run
    if (mine !== newest) return;
    document.getElementById("results").replaceWith(page.getElementById("results"));
    history.replaceState(null, "", address);
  }

  form.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(refresh, 250);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    clearTimeout(timer);
    refresh();
  });
}
