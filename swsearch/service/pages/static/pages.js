"use strict";

// What htmx does not do: examples, alignments below their row, announcements, progress without events, copying.

const announcer = document.getElementById("announcer");
const announce = (text) => { if (announcer.textContent !== text) announcer.textContent = text; };

// An example fills the form without losing its other contents, and chooses a database that fits it.
function fillExample(link) {
  document.getElementById("sequences").value = document.getElementById(`example-${link.dataset.example}`).content.textContent;
  document.getElementById("file").value = "";
  chooseDatabase(link.dataset.alphabet);
  document.getElementById("sequences").focus();
}

// The first database that sequences of this alphabet can be searched in, unless one is chosen.
let automatic = null;
function chooseDatabase(alphabet) {
  const boxes = [...document.querySelectorAll("input[name=databases]")];
  const fits = (box) => box.dataset.alphabet === alphabet;
  const first = boxes.find(fits);
  if (!first || boxes.some((box) => box.checked && fits(box))) return;
  for (const box of boxes) box.checked = box === first;
  automatic = first;
}

// The alphabet of pasted sequences; undefined of a few letters. The server decides by more than this.
function alphabetOf(text) {
  const start = text.slice(0, 100000).trimStart();
  if (start.startsWith("@")) return "dna";
  const letters = start.replace(/^[>;].*$/gm, "").replace(/[^a-z]/gi, "");
  if (letters.length < 10) return undefined;
  return letters.replace(/[^acgtun]/gi, "").length >= 0.9 * letters.length ? "dna" : "protein";
}

// Pasted sequences choose a database until somebody has chosen one by hand, to which it gives way.
const sequences = document.getElementById("sequences");
let isChosenByHand = false;
document.addEventListener("change", (event) => {
  if (event.target.name !== "databases") return;
  isChosenByHand = true;
  if (automatic && event.target !== automatic && event.target.checked) {
    automatic.checked = false;
    announce(`${automatic.value} is no longer chosen.`);
  }
  automatic = null;
});
sequences?.addEventListener("input", () => {
  const alphabet = alphabetOf(sequences.value);
  if (alphabet && !isChosenByHand) chooseDatabase(alphabet);
});

// The alignments of a subject are loaded once, into the row below it; later clicks close and open that row.
function toggleAlignment(link) {
  const cell = document.getElementById(link.dataset.alignment);
  const row = cell.parentElement;
  row.hidden = !row.hidden;
  link.setAttribute("aria-expanded", String(!row.hidden));
  if (!row.hidden && !cell.hasChildNodes()) {
    cell.textContent = "Loading…";
    htmx.ajax("GET", link.href, { target: cell, swap: "innerHTML" })
      .catch(() => { cell.textContent = "The alignment could not be loaded; close and open it to try again."; });
  }
}

// What a button copies: the element after "#", the text at an address, or the address of the page.
async function copy(button) {
  const what = button.dataset.copy;
  const element = what.startsWith("#") ? document.querySelector(what) : null;
  let text = element ? element.value ?? element.textContent : location.href.split("#")[0];
  if (what && !element) {
    const answer = await fetch(what);
    if (!answer.ok) throw new Error(answer.statusText);
    text = await answer.text();
  }
  await navigator.clipboard.writeText(text);
}

// Hits stay chosen while the table is sorted, filtered and turned over.
const chosen = new Set();
document.addEventListener("change", (event) => {
  if (event.target.name === "rank") chosen[event.target.checked ? "add" : "delete"](event.target.value);
});
document.addEventListener("formdata", (event) => {
  if (event.target.id !== "chosen") return;
  event.formData.delete("rank");
  for (const rank of chosen) event.formData.append("rank", rank);
});

function prepare(root) {
  for (const box of root.querySelectorAll("input[name=rank]")) box.checked = chosen.has(box.value);
  for (const link of root.querySelectorAll("[data-alignment]")) {
    if (!link.hasAttribute("aria-expanded")) {
      link.setAttribute("aria-expanded", "false");
      link.setAttribute("aria-controls", link.dataset.alignment);
    }
  }
  for (const button of root.querySelectorAll("[data-copy]")) button.hidden = !navigator.clipboard;
  const field = root.querySelector("[data-select]");
  if (field) field.select();
}

document.addEventListener("click", (event) => {
  if (event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
  for (const menu of document.querySelectorAll("details.menu[open]:not(.block)")) if (!menu.contains(event.target)) menu.open = false;
  const link = event.target.closest("[data-example], [data-alignment], [data-rank], [data-copy]");
  if (!link) return;
  if (link.dataset.example) {
    event.preventDefault();
    fillExample(link);
  } else if (link.dataset.alignment) {
    event.preventDefault();
    toggleAlignment(link);
  } else if ("copy" in link.dataset) {
    event.preventDefault();
    copy(link).then(() => announce("Copied."), () => announce("It could not be copied."));
  } else {
    // A bar opens its hit in the table if the hit is there; otherwise it leads to the hit's page.
    const there = document.querySelector(`#hit-${link.dataset.rank} [data-alignment]`);
    if (!there) return;
    event.preventDefault();
    if (there.getAttribute("aria-expanded") !== "true") toggleAlignment(there);
    there.scrollIntoView({ block: "center" });
    there.focus({ preventScroll: true });
  }
});

document.addEventListener("keydown", (event) => {
  const menu = event.key === "Escape" && event.target.closest?.("details.menu[open]");
  if (menu) {
    menu.open = false;
    menu.querySelector("summary").focus();
  }
});

// An empty field of the filter is not part of the address.
document.addEventListener("htmx:configRequest", (event) => {
  const sent = event.detail.formData;
  if (event.detail.verb === "get") for (const [name, value] of [...sent.entries()]) if (value === "") sent.delete(name);
});

document.addEventListener("htmx:afterSwap", (event) => {
  prepare(document);
  // A link was withdrawn together with the button that was pressed.
  if (event.detail.target?.id === "shared" && !document.querySelector("#shared [data-select]")) document.querySelector("#shared .card").focus();
  const state = document.querySelector("#progress [data-announce]") ?? document.querySelector("#hits[data-announce]");
  if (state) announce(state.dataset.announce);
  // The table was replaced with the link that was pressed in it; the focus goes to the same link of the new one.
  const pressed = event.detail.requestConfig?.elt?.dataset;
  const name = pressed?.sort ? `[data-sort="${pressed.sort}"]` : pressed?.page ? `[data-page="${pressed.page}"]` : null;
  if (name) (document.querySelector(name) ?? document.querySelector("#hits .scroll"))?.focus();
});

// Progress: the server sends it; where its events do not arrive, it is asked for.
const progress = document.getElementById("progress");
if (progress) {
  let polling = false;
  const ended = () => location.reload();
  const poll = async () => {
    try {
      await htmx.ajax("GET", progress.dataset.poll, { target: progress, swap: "innerHTML" });
    } catch { /* the server may be starting again; the next attempt follows */ }
    if (progress.querySelector(".done, .failed, .cancelled")) ended();
    else setTimeout(poll, 2000);
  };
  let failures = 0;
  document.addEventListener("htmx:sseClose", (event) => { if (event.detail.type === "message") ended(); });
  document.addEventListener("htmx:sseOpen", () => { failures = 0; });
  document.addEventListener("htmx:sseError", () => {
    failures += 1;
    if (failures >= 3 && !polling) {
      polling = true;
      poll();
    }
  });
}

prepare(document);
document.querySelector("[data-focus]")?.focus();
