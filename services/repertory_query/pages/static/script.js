// What a page does beyond plain HTML: results while one types, keys, and a status that stays fresh.
// It only shows what the server rendered; without it everything works with one more keystroke.
"use strict";

const form = document.getElementById("search");
const box = document.getElementById("q");
const live = document.getElementById("live");
const announcement = document.getElementById("announcement"); // on the page of the search alone
let underWay, shown, timer;
let isTyping = false; // whether the newest entry of the history is what is being typed

// Show the part of a page that changes. What was asked for before is given up.
async function show(address) {
  underWay?.abort();
  const { signal } = (underWay = new AbortController());
  const url = new URL(address, location.href);
  url.searchParams.set("part", "true");
  try {
    const response = await fetch(url, { signal, headers: { Accept: "application/json" } });
    if (response.status === 401) return location.reload();
    const text = response.ok ? await response.text() : (await response.json()).detail;
    if (signal.aborted || text === shown) return;
    const focused = live.contains(document.activeElement) && document.activeElement.id;
    live[response.ok ? "innerHTML" : "textContent"] = shown = text;
    if (focused) document.getElementById(focused)?.focus();
  } catch {
    if (signal.aborted) return;
    live.textContent = shown = "The server cannot be reached.";
  }
  if (announcement) announcement.textContent = (live.querySelector("h2") ?? live).textContent;
}

function search() {
  clearTimeout(timer);
  const given = [...new FormData(form)].map(([name, value]) => [name, value.trim()]);
  const query = String(new URLSearchParams(given.filter(([, value]) => value)));
  if (query === location.search.slice(1)) return;
  const address = query ? form.action + "?" + query : form.action;
  history[isTyping ? "replaceState" : "pushState"](null, "", address);
  isTyping = true;
  document.title = [box.value.trim().slice(0, 80), "Repertory"].filter(Boolean).join(" · ");
  for (const panel of document.querySelectorAll(".filters details:has(.chosen)")) {
    panel.querySelector(".chosen").textContent = panel.querySelectorAll(":checked").length || "";
  }
  show(location.href);
}

if (announcement) {
  document.addEventListener("input", ({ target }) => {
    if (target.form !== form) return;
    clearTimeout(timer);
    if (target !== box) isTyping = false;
    timer = setTimeout(search, target === box ? 120 : 0);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    search();
    isTyping = false;
  });
  addEventListener("popstate", () => location.hash || location.reload());
} else if (live) {
  setTimeout(async function again() {
    if (!document.hidden) await show(location.href);
    setTimeout(again, 1000 * live.dataset.every);
  }, 1000 * live.dataset.every);
}

document.addEventListener("keydown", (event) => {
  const { key, target } = event;
  if (!box || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  const hits = [...document.querySelectorAll("a.hit")];
  const place = hits.indexOf(target);
  const open = document.querySelector(".filters details[open]");
  let next;
  if (key === "/" && !target.matches("input:not([type=checkbox])")) next = box;
  else if (key === "ArrowDown" && (target === box || place >= 0)) next = hits[place + 1];
  else if (key === "ArrowUp" && place >= 0) next = hits[place - 1] ?? box;
  else if (key === "Escape" && open) next = open.firstElementChild;
  else if (key === "Escape" && target !== box) next = box;
  if (!next) return;
  event.preventDefault();
  if (key === "Escape" && open) open.open = false;
  next.focus();
  if (next === box && key !== "ArrowUp") box.select();
});

document.addEventListener("click", ({ target }) => {
  const open = document.querySelector(".filters details[open]");
  if (open && !open.contains(target)) open.open = false;
});
