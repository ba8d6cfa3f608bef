"use strict";

// The icicle of taxa: a tree in which the mouse and the keyboard move and zoom. Without this script it is a picture.
(() => {
  const LEAST_HEIGHT = 13; // pixels from which a taxon has its name
  const level = (taxon) => Number(taxon.dataset.level);
  const start = (taxon) => Number(taxon.dataset.start);
  const end = (taxon) => start(taxon) + Number(taxon.dataset.count);
  const holds = (one, other) => start(one) <= start(other) && end(one) >= end(other);
  const taxa = (picture) => [...picture.children];
  const shown = (taxon) => taxon && !taxon.classList.contains("gone");

  const parent = (taxon) => {
    let before = taxon.previousElementSibling;
    while (before && level(before) >= level(taxon)) before = before.previousElementSibling;
    return before;
  };
  const child = (taxon) => {
    const next = taxon.nextElementSibling;
    return next && level(next) > level(taxon) ? next : null;
  };
  const neighbour = (taxon, side) => {
    let other = taxon[side];
    while (other && (level(other) !== level(taxon) || !shown(other))) other = other[side];
    return other;
  };

  // Let a taxon have the whole height, with those above it; null shows all.
  function zoom(picture, root) {
    const all = taxa(picture);
    const total = Math.max(...all.map(end));
    const from = root ? start(root) : 0;
    const whole = (root ? end(root) : total) - from;
    const height = picture.getBoundingClientRect().height;
    for (const taxon of all) {
      const above = root && level(taxon) < level(root) && holds(taxon, root);
      const inside = !root || (level(taxon) >= level(root) && holds(root, taxon));
      taxon.classList.toggle("gone", !above && !inside);
      if (!above && !inside) continue;
      const share = above ? 1 : (end(taxon) - start(taxon)) / whole;
      taxon.setAttribute("y", above ? "0%" : `${(100 * (start(taxon) - from)) / whole}%`);
      taxon.setAttribute("height", `${100 * share}%`);
      taxon.querySelector("text").setAttribute("visibility", share * height < LEAST_HEIGHT ? "hidden" : "inherit");
    }
    picture.zoomed = root;
    const words = root ? root.querySelector("title").textContent : "All taxa";
    picture.closest(".icicle").querySelector(".shown").textContent = words;
  }

  function focusOn(taxon) {
    if (!shown(taxon)) return;
    for (const other of taxon.parentElement.children) other.setAttribute("tabindex", other === taxon ? "0" : "-1");
    taxon.focus({ preventScroll: true });
    taxon.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  function enlarge(taxon) {
    const picture = taxon.parentElement;
    zoom(picture, picture.zoomed === taxon ? parent(taxon) : taxon);
    focusOn(taxon);
  }

  const moves = {
    ArrowRight: child,
    ArrowLeft: parent,
    ArrowDown: (taxon) => neighbour(taxon, "nextElementSibling"),
    ArrowUp: (taxon) => neighbour(taxon, "previousElementSibling"),
    Home: (taxon) => taxon.parentElement.firstElementChild,
  };

  function prepare() {
    for (const picture of document.querySelectorAll(".taxa[role=img]")) {
      picture.setAttribute("role", "tree");
      for (const taxon of picture.children) {
        taxon.setAttribute("role", "treeitem");
        taxon.setAttribute("aria-level", level(taxon) + 1);
        taxon.setAttribute("tabindex", taxon === picture.firstElementChild ? "0" : "-1");
      }
      picture.zoomed = null;
    }
  }

  document.addEventListener("click", (event) => {
    const taxon = event.target.closest(".taxa > .taxon");
    if (taxon) enlarge(taxon);
  });
  document.addEventListener("keydown", (event) => {
    const taxon = event.target.closest?.(".taxa > .taxon");
    if (!taxon || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in moves) focusOn(moves[event.key](taxon));
    else if (event.key === "Enter" || event.key === " ") enlarge(taxon);
    else if (event.key === "Escape" && taxon.parentElement.zoomed) zoom(taxon.parentElement, null);
    else return;
    event.preventDefault();
  });
  document.addEventListener("htmx:afterSwap", prepare); // parts of the service's pages come later
  prepare();
})();
