"use strict";
// In the head and at once, so that a dark page never flashes white.
{
  const chosen = localStorage.getItem("theme");
  if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
}
