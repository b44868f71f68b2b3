// Adds results while typing, keyboard shortcuts, and a status that updates itself to the pages.
// It only shows HTML that the server rendered. Without it, everything works with an extra keystroke.
"use strict";

const form = document.getElementById("search");
const box = document.getElementById("q");
const live = document.getElementById("live");
const announcement = document.getElementById("announcement"); // only on the search page
const FOCUSABLE = "a, button, input, select, summary, textarea, [tabindex]";
const SIGNED_OUT = "You are no longer signed in. Sign in on another tab, and try again here.";
const MANY = 12; // a filter with more values gets a box to narrow them
const tables = () => [...live.querySelectorAll(".wide")];
const nameOf = (element) => element.getAttribute("aria-label");
let underWay, shown, timer;
let failed = false; // whether the last response was a failure
let isTyping = false; // whether the newest history entry is the query being typed
let shownAt = location.pathname + location.search;

// Whether text is selected or a button held down in the part of a page that updates itself.
function isInUse() {
  if (announcement) return false;
  const selection = getSelection();
  const isSelected = !selection.isCollapsed && selection.containsNode(live, true);
  return isSelected || live.querySelector(":active");
}

// Show a sentence, with text in backticks as code.
function say(element, sentence) {
  const words = sentence.split("`").map((text, number) => {
    const part = document.createElement(number % 2 ? "code" : "span");
    part.textContent = text;
    return part;
  });
  element.replaceChildren(...words);
}

// Update the part of a page that changes. A previous request is aborted.
async function show(address) {
  underWay?.abort();
  const { signal } = (underWay = new AbortController());
  if (announcement) live.ariaBusy = "true"; // until then, the page shows the previous results
  await renew(address, signal);
  if (!signal.aborted) live.ariaBusy = null;
}

async function renew(address, signal) {
  const url = new URL(address, location.href);
  url.searchParams.set("part", "true");
  try {
    const response = await fetch(url, { signal, headers: { Accept: "application/json" } });
    if (response.status === 401) return location.reload();
    const text = response.ok ? await response.text() : (await response.json()).detail;
    if (signal.aborted) return;
    failed = !response.ok;
    if (text === shown || isInUse()) return;
    const scrolled = new Map(tables().map((one) => [nameOf(one), one.scrollLeft]));
    const focused = document.activeElement;
    const place = [...live.querySelectorAll(FOCUSABLE)].indexOf(focused);
    if (response.ok) live.innerHTML = text;
    else say(live, text);
    shown = text;
    const same = focused.id ? document.getElementById(focused.id) : null;
    if (place >= 0) (same ?? live.querySelectorAll(FOCUSABLE)[place])?.focus({ preventScroll: true });
    for (const one of tables()) one.scrollLeft = scrolled.get(nameOf(one)) ?? 0;
    recount();
  } catch {
    if (signal.aborted || isInUse()) return;
    failed = true;
    live.textContent = shown = "The server cannot be reached.";
  }
  if (announcement) announcement.textContent = (live.querySelector("h2") ?? live).textContent;
}

// Add a box that narrows the values of an open filter, if there are many.
function offerNarrowing(panel, text = "") {
  const labels = [...panel.querySelectorAll("#facets label")];
  if (labels.length <= MANY || panel.querySelector(".narrow")) return;
  const box = document.createElement("input");
  box.type = "search";
  box.className = "narrow";
  box.placeholder = "Type to narrow the list";
  box.setAttribute("aria-label", box.placeholder);
  const narrow = () => {
    const wanted = box.value.trim().toLowerCase();
    for (const label of labels) label.hidden = !label.textContent.toLowerCase().includes(wanted);
  };
  box.addEventListener("input", narrow);
  box.value = text;
  narrow();
  panel.querySelector("fieldset").prepend(box);
}

// Replace the filters by those that came with the results; keep the open and the focused one.
function recount() {
  const counted = document.getElementById("counted");
  if (!counted) return;
  const facets = document.getElementById("facets");
  const { name, value } = facets.contains(document.activeElement) ? document.activeElement : {};
  const summary = document.activeElement.closest?.("#facets summary")?.parentElement.dataset.field;
  const open = facets.querySelector("details[open]")?.dataset.field;
  const scrolled = facets.querySelector("details[open] fieldset")?.scrollTop;
  const narrowed = facets.querySelector("details[open] .narrow")?.value;
  facets.replaceChildren(counted.content);
  counted.remove();
  const panel = open && facets.querySelector(`details[data-field=${open}]`);
  if (panel) {
    panel.open = true;
    offerNarrowing(panel, narrowed);
    panel.querySelector("fieldset").scrollTop = scrolled;
  }
  if (summary) facets.querySelector(`details[data-field=${summary}] summary`)?.focus();
  for (const input of name ? facets.querySelectorAll("input") : []) {
    if (input.name === name && input.value === value) input.focus();
  }
}

function search() {
  clearTimeout(timer);
  const given = [...new FormData(form)].map(([name, value]) => [name, value.trim()]);
  const query = String(new URLSearchParams(given.filter(([, value]) => value)));
  if (query === location.search.slice(1)) return failed && show(location.href);
  const address = query ? form.action + "?" + query : form.action;
  history[isTyping ? "replaceState" : "pushState"](null, "", address);
  isTyping = true;
  shownAt = location.pathname + location.search;
  document.title = [box.value.trim().slice(0, 80), "Repertory"].filter(Boolean).join(" · ");
  for (const panel of document.querySelectorAll(".filters details:has(.chosen)")) {
    panel.querySelector(".chosen").textContent = panel.querySelectorAll(":checked").length || "";
  }
  show(location.href);
}

// Fetch a part of a page; a problem is one sentence.
async function part(address, options = {}) {
  const url = new URL(address, location.href);
  url.searchParams.set("part", "true");
  try {
    const response = await fetch(url, { ...options, headers: { Accept: "application/json" } });
    if (response.status === 401) return { problem: SIGNED_OUT };
    if (/^text\/html/.test(response.headers.get("Content-Type"))) {
      return { html: await response.text() };
    }
    return { problem: (await response.json()).detail };
  } catch {
    return { problem: "The server cannot be reached." };
  }
}

function fill(element, { html, problem }) {
  if (problem) say(element, problem);
  else element.innerHTML = html;
  offerCopies(element);
}

// Load the explanation of a result when its panel is opened.
document.addEventListener(
  "toggle",
  async ({ target }) => {
    const { href } = target.dataset;
    if (!target.open || !href) return;
    delete target.dataset.href;
    const found = await part(href);
    fill(target.querySelector(".explained"), found);
    if (found.problem) target.dataset.href = href; // opening it again tries again
  },
  true,
);

// Call a tool without leaving the page.
const trial = document.querySelector("form[data-results]");
trial?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const button = trial.querySelector("button:not([type])");
  if (button.ariaDisabled) return; // not `disabled`, which would lose the focus
  const results = document.getElementById(trial.dataset.results);
  results.textContent = "Calling…";
  button.ariaDisabled = "true";
  const body = new URLSearchParams(new FormData(trial));
  fill(results, await part(trial.action, { method: "POST", body }));
  button.ariaDisabled = null;
});

// Buttons that copy elements with data-copy. Without a secure connection, pages have no clipboard,
// so the text is selected and copied with a command.
async function copy(element) {
  const text = element.dataset.text ?? element.textContent;
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    getSelection().selectAllChildren(element);
    return element.dataset.text === undefined && document.execCommand("copy");
  }
}

function offerCopies(root) {
  for (const element of root.querySelectorAll("[data-copy]")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy quiet";
    button.textContent = "Copy";
    button.setAttribute("aria-label", `Copy the ${element.dataset.copy}`);
    button.addEventListener("click", async () => {
      button.textContent = (await copy(element)) ? "Copied" : "Press Ctrl+C";
      setTimeout(() => (button.textContent = "Copy"), 2000);
    });
    if (element.matches("pre")) {
      const holder = document.createElement("div");
      holder.className = "copyable";
      element.replaceWith(holder);
      holder.append(element);
    }
    element.after(button);
  }
}
offerCopies(document);

if (announcement) {
  document.addEventListener("input", ({ target }) => {
    if (!form || target.form !== form) return;
    clearTimeout(timer);
    if (target !== box) isTyping = false;
    timer = setTimeout(search, target === box ? 120 : 0);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    search();
    isTyping = false;
  });
  addEventListener("popstate", () => {
    if (location.pathname + location.search !== shownAt) location.reload();
  });
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
  if (key === "/" && !target.matches("input:not([type=checkbox]), textarea, select")) next = box;
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

document.addEventListener("toggle", ({ target }) => target.open && offerNarrowing(target), true);

// An open filter covers the results, so it closes when the user leaves it. Clicking one of its
// labels first moves the focus to an element around the filter.
function closeFilter({ type, target }) {
  const open = document.querySelector(".filters details[open]");
  const isAround = type === "focusin" && target.contains(open);
  if (open && !open.contains(target) && !isAround) open.open = false;
}
document.addEventListener("click", closeFilter);
document.addEventListener("focusin", closeFilter);

// Do not submit a form twice, because the key created by the first request would not be shown.
let isSent = false;
document.addEventListener("submit", (event) => {
  if (event.defaultPrevented || event.target.method !== "post") return;
  if (isSent) event.preventDefault();
  isSent = true;
});
addEventListener("pageshow", () => (isSent = false));

// A page that waits for the server polls until it is ready. It does not reload over typed text.
const waiting = document.querySelector("[data-again]");
if (waiting) {
  setTimeout(async function again() {
    const headers = { Accept: "application/json" };
    const answer = await fetch(location.href, { headers }).catch(() => null);
    if (answer && answer.status !== 503 && box.value === box.defaultValue) location.reload();
    else setTimeout(again, 1000 * waiting.dataset.again);
  }, 1000 * waiting.dataset.again);
}
