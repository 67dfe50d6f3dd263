"use strict";
// What all pages share: keys, dialogs, links that are copied, the picture on the light table.
(() => {
  const said = () => document.getElementById("said");
  function say(words) {
    const node = said();
    if (node) node.textContent = words;
  }

  // Keys: an element with data-key is clicked, or focused where it takes text.
  function isTyping(target) {
    return target.closest("input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]") !== null;
  }
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape" && isTyping(event.target)) {
      event.target.blur();
      return;
    }
    if (isTyping(event.target) || document.querySelector("dialog[open]")) return;
    if (event.key === "?") {
      open("keys");
      event.preventDefault();
      return;
    }
    const stage = activeStage();
    if (stage && zoomByKey(stage, event.key)) {
      event.preventDefault();
      return;
    }
    const wanted = [...document.querySelectorAll("[data-key]")].find(
      (node) => node.dataset.key.split(" ").includes(event.key) && !node.disabled && !node.closest("[hidden]"));
    if (!wanted) return;
    event.preventDefault();
    if (wanted.matches("input, textarea, select")) wanted.focus();
    else wanted.click();
  });

  function open(name) {
    const dialog = document.getElementById(name);
    if (dialog && !dialog.open) dialog.showModal();
  }
  document.addEventListener("click", (event) => {
    const opener = event.target.closest("[data-opens]");
    if (opener) open(opener.dataset.opens);
    const copier = event.target.closest("[data-copies]");
    if (copier) copy(copier);
  });
  async function copy(button) {
    const address = new URL(button.dataset.copies || location.href, location.href).href;
    try {
      await navigator.clipboard.writeText(address);
      say("The link is copied.");
    } catch {
      // Without the right to the clipboard the address bar is the place to copy from.
      history.replaceState(null, "", address);
      say("The link stands in the address bar.");
    }
    const before = button.textContent;
    button.textContent = said().textContent.includes("copied") ? "Copied" : "In the address bar";
    setTimeout(() => { button.textContent = before; }, 1600);
  }

  // The picture: it fits its frame, and zooms around the middle of what is seen.
  const MOST = 12;
  const stages = new WeakMap();
  function activeStage() {
    const found = [...document.querySelectorAll(".stage[data-width]")];
    return found.find((stage) => stage.contains(document.activeElement)) || found[0];
  }
  function fit(stage) {
    const view = stage.querySelector(".view");
    const [width, height] = [Number(stage.dataset.width), Number(stage.dataset.height)];
    return Math.min(view.clientWidth / width, view.clientHeight / height);
  }
  function zoom(stage, factor, at) {
    const view = stage.querySelector(".view");
    const sheet = stage.querySelector(".sheet");
    const state = stages.get(stage) || {zoom: 1};
    const next = Math.min(MOST, Math.max(1, factor === 0 ? 1 : state.zoom * factor));
    const scale = fit(stage) * next;
    const box = view.getBoundingClientRect();
    const [x, y] = at ? [at.x - box.left, at.y - box.top] : [view.clientWidth / 2, view.clientHeight / 2];
    const before = sheet.getBoundingClientRect();
    const [shareX, shareY] = before.width
      ? [(x + box.left - before.left) / before.width, (y + box.top - before.top) / before.height] : [0.5, 0.5];
    sheet.style.width = `${Number(stage.dataset.width) * scale}px`;
    sheet.style.height = `${Number(stage.dataset.height) * scale}px`;
    view.scrollLeft = shareX * sheet.offsetWidth - x;
    view.scrollTop = shareY * sheet.offsetHeight - y;
    stages.set(stage, {zoom: next});
    stage.classList.add("staged");
    const label = stage.querySelector("[data-zoom-label]");
    if (label) label.textContent = `${Math.round(100 * next)}%`;
  }
  function zoomByKey(stage, key) {
    if (key === "+" || key === "=") zoom(stage, 1.4);
    else if (key === "-") zoom(stage, 1 / 1.4);
    else if (key === "0") zoom(stage, 0);
    else return false;
    return true;
  }
  function isStaged(stage) {
    return stages.has(stage);
  }
  function prepare(root) {
    for (const stage of root.querySelectorAll(".stage[data-width]")) {
      if (isStaged(stage)) continue;
      zoom(stage, 0);
      const view = stage.querySelector(".view");
      view.addEventListener("wheel", (event) => {
        if (!event.ctrlKey && !event.metaKey) return;
        event.preventDefault();
        zoom(stage, event.deltaY < 0 ? 1.2 : 1 / 1.2, {x: event.clientX, y: event.clientY});
      }, {passive: false});
      view.addEventListener("dblclick", (event) => {
        zoom(stage, stages.get(stage).zoom > 1.5 ? 0 : 2.5, {x: event.clientX, y: event.clientY});
      });
      drag(view);
      new ResizeObserver(() => zoom(stage, 1)).observe(view);
    }
  }
  function drag(view) {
    let from = null;
    view.addEventListener("pointerdown", (event) => {
      if (event.pointerType === "touch" || event.button) return;
      from = {x: event.clientX + view.scrollLeft, y: event.clientY + view.scrollTop};
    });
    window.addEventListener("pointermove", (event) => {
      if (!from || !event.buttons) { from = null; return; }
      view.scrollLeft = from.x - event.clientX;
      view.scrollTop = from.y - event.clientY;
    });
  }
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-zoom]");
    if (button) zoom(button.closest(".stage"), Number(button.dataset.zoom));
    const boxes = event.target.closest("[data-toggles-boxes]");
    if (boxes) {
      const stage = boxes.closest(".stage");
      const isOff = stage.dataset.boxes === "off";
      stage.dataset.boxes = isOff ? "on" : "off";
      boxes.setAttribute("aria-pressed", String(isOff));
    }
  });

  // Regions and what is said of them: pointing at the one lights the other.
  function light(region, isOn) {
    for (const node of document.querySelectorAll("[data-region]")) {
      if (node.dataset.region === region) node.classList.toggle("on", isOn);
    }
    for (const mask of document.querySelectorAll("img[data-source]")) {
      // A mask is fetched when it is wanted for the first time.
      if (isOn && mask.dataset.region === region && !mask.src) mask.src = mask.dataset.source;
    }
  }
  function regionAt(event) {
    const node = event.target.closest ? event.target.closest("[data-region]") : null;
    return node ? node.dataset.region : "";
  }
  for (const [name, isOn] of [["pointerover", true], ["focusin", true], ["pointerout", false], ["focusout", false]]) {
    document.addEventListener(name, (event) => {
      const region = regionAt(event);
      if (region) light(region, isOn);
    });
  }

  document.addEventListener("DOMContentLoaded", () => prepare(document));
  document.addEventListener("htmx:load", () => prepare(document));
  // What is polled does not replace what a person is working in.
  const BUSY = "[data-keeps]:focus-within, [data-keeps] input[name=run]:checked, details.picker[open]";
  document.addEventListener("htmx:beforeRequest", (event) => {
    if (event.target.hasAttribute("data-live") && document.querySelector(BUSY)) event.preventDefault();
  });
  document.addEventListener("htmx:afterSettle", (event) => {
    const words = event.target.dataset ? event.target.dataset.says : "";
    if (words) say(words);
  });
  document.addEventListener("htmx:sendError", () => say("The server does not answer."));
})();
