"use strict";
addEventListener("DOMContentLoaded", () => {
  const sliders = JSON.parse(document.getElementById("data").textContent);
  const form = document.getElementById("controls");
  const status = document.getElementById("status");
  const answer = document.getElementById("answer");
  const lose = document.getElementById("lose");
  const range = (path) => form.querySelector(`input[type=range][name="${CSS.escape(path)}"]`);
  const number = (path) => form.querySelector(`input[type=number][data-for="${CSS.escape(path)}"]`);
  let newest = 0, waiting = 0, listening = null, clock = 0;

  const asked = () => {
    const values = {};
    for (const slider of sliders) {
      const value = Number(number(slider.path).value);
      if (Number.isFinite(value) && number(slider.path).value !== "" && value !== slider.value) {
        values[slider.path] = Math.min(slider.high, Math.max(slider.low, value));
      }
    }
    return { values, lose: lose ? [...lose.selectedOptions].map((option) => option.value) : [] };
  };

  const say = (words, kind) => { status.textContent = words; status.className = "status " + kind; };

  const ask = async () => {
    const mine = ++newest;
    if (listening) listening.abort();
    listening = new AbortController();
    const begun = performance.now();
    clearInterval(clock);
    say("solving…", "busy");
    answer.classList.add("old");
    clock = setInterval(() => say(`solving… ${((performance.now() - begun) / 1000).toFixed(0)} s`, "busy"), 1000);
    try {
      const reply = await fetch("/answer", {
        method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(asked()), signal: listening.signal,
      });
      const data = await reply.json();
      if (mine !== newest) return;
      clearInterval(clock);
      if (data.overtaken) { say("a newer question, of another window, was asked", "wrong"); return; }
      document.getElementById("changes").textContent = (data.changes || []).length ? "changed: " + data.changes.join(", ") : "";
      if (data.plan) {
        answer.innerHTML = data.body;
        answer.classList.remove("old");
        say(`${data.plan.status} · ${((performance.now() - begun) / 1000).toFixed(1)} s`, data.plan.deployments.length ? "right" : "wrong");
      } else {
        say(data.faults.join("\n"), "wrong");
      }
    } catch (error) {
      if (mine !== newest || error.name === "AbortError") return;
      clearInterval(clock);
      say("the planner does not answer: is it still running?", "wrong");
    }
  };

  const soon = () => { clearTimeout(waiting); waiting = setTimeout(ask, 120); };

  form.addEventListener("input", (event) => {
    const from = event.target;
    if (from.type === "range") number(from.name).value = from.value;
    if (from.type === "number") range(from.dataset.for).value = from.value;
    soon();
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  document.getElementById("reset").addEventListener("click", () => {
    for (const slider of sliders) { range(slider.path).value = slider.value; number(slider.path).value = slider.value; }
    if (lose) for (const option of lose.options) option.selected = false;
    soon();
  });
  document.getElementById("reset").click();
});
