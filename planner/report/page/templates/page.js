"use strict";
(() => {
  const root = document.documentElement;
  const tip = document.getElementById("tip");
  document.getElementById("theme").addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });
  const show = (target, x, y) => {
    tip.textContent = target.dataset.tip;
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    tip.style.left = Math.max(4, Math.min(x + 12, innerWidth - box.width - 4)) + "px";
    tip.style.top = Math.max(4, y + 18 + box.height > innerHeight ? y - box.height - 8 : y + 16) + "px";
  };
  document.addEventListener("pointermove", (event) => {
    const target = event.target.closest("[data-tip]");
    if (target) show(target, event.clientX, event.clientY);
    else tip.hidden = true;
  });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") tip.hidden = true; });
  const main = document.querySelector("main");
  // Answers of the local page come and go, so clicks are listened for once, above them.
  main.addEventListener("click", (event) => {
      const button = event.target.closest(".only");
      if (!button) return;
      const on = button.getAttribute("aria-pressed") !== "true";
      document.querySelectorAll(".only").forEach((other) => other.setAttribute("aria-pressed", String(on && other === button)));
      document.querySelectorAll(".shown").forEach((cell) => cell.classList.remove("shown"));
      main.classList.toggle("dimmed", on);
      if (on) document.querySelectorAll(".gpus ." + button.dataset.only + ", .share ." + button.dataset.only).forEach((cell) => cell.classList.add("shown"));
  });
  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((part) => { part.open = true; }));
})();
