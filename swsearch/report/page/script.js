"use strict";

// Sort a table by the column whose header is pressed: first in the direction the header names, then in the other.
// Rows of equal value stay in the order they had; rows without a value come last either way.
const words = new Intl.Collator("en", { numeric: true });
// The first of the last rows, all of which are below the line between likely hits and others.
function firstUnlikely(rows) {
  let first = rows.length;
  while (first && rows[first - 1].className === "unlikely") first -= 1;
  return rows[first] ?? null;
}
document.addEventListener("click", (event) => {
  const button = event.target.closest("th > button");
  if (!button) return;
  const header = button.parentElement;
  const table = header.closest("table");
  const other = { ascending: "descending", descending: "ascending" };
  const direction = other[header.getAttribute("aria-sort")] ?? header.dataset.first;
  const sign = direction === "ascending" ? 1 : -1;
  const read = (cell) => (cell.className === "number" ? Number.parseFloat(cell.textContent) : cell.textContent);
  const compare = (a, b) => (typeof a === "number" ? a - b : words.compare(a, b));
  const missing = (value) => value === "" || Number.isNaN(value);
  const body = table.tBodies[0];
  body.remove(); // rows that move outside the page cost the browser nothing
  table.limit ??= body.querySelector(".limit");
  table.limit?.remove();
  const rows = Array.from(body.rows, (row) => ({ row, value: read(row.cells[header.cellIndex]) }));
  rows.sort((a, b) => missing(a.value) - missing(b.value) || (missing(a.value) ? 0 : sign * compare(a.value, b.value)));
  for (const { row } of rows) body.append(row);
  // The line between likely hits and others has a place only where the best E-value comes first.
  const isByEvalue = direction === "ascending" && ["#", "E-value"].includes(button.textContent);
  if (table.limit && isByEvalue) body.insertBefore(table.limit, firstUnlikely(body.rows));
  table.append(body);
  for (const cell of header.parentElement.cells) cell.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", direction);
  document.querySelector(".status").textContent = `Sorted by ${button.textContent}, ${direction}.`;
});

document.addEventListener("click", (event) => {
  if (!event.target.matches("button.all")) return;
  document.getElementById(event.target.getAttribute("aria-controls")).classList.remove("short");
  event.target.remove();
});

// A list of the queries, or proteins, where there are several, made when it is first opened.
const titles = document.querySelectorAll("h2");
const contents = document.querySelector("nav");
if (titles.length > 1) {
  contents.hidden = false;
  contents.querySelector("summary").textContent = `${titles.length} ${contents.getAttribute("aria-label").toLowerCase()}`;
  contents.querySelector("details").addEventListener("toggle", () => {
    const list = document.createElement("ol");
    for (const title of titles) {
      const link = document.createElement("a");
      link.href = `#${title.id}`;
      link.textContent = title.textContent;
      list.appendChild(document.createElement("li")).append(link);
    }
    contents.querySelector("details").append(list);
  }, { once: true });
}
