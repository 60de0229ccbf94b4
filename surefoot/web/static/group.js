"use strict";
// The colour of tokens is the reader's choice and stays so; a link to a sample marks it.
{
  const samples = document.getElementById("samples");
  const choose = (value) => {
    samples.className = `samples by-${value}`;
    document.getElementById("colours").dataset.by = value;
  };
  const radios = [...document.querySelectorAll("[name=colour]")];
  const kept = localStorage.getItem("token-colour");
  for (const radio of radios) {
    if (radio.value === kept) radio.checked = true;
    radio.addEventListener("change", () => {
      localStorage.setItem("token-colour", radio.value);
      choose(radio.value);
    });
  }
  choose(radios.find((radio) => radio.checked).value);
  if (location.hash) document.getElementById(location.hash.slice(1))?.classList.add("marked");
}
