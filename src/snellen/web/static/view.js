"use strict";
// The pages of `snellen view`: which probes are shown, evidence, and addresses without empty values.
(() => {
  const KEPT = "snellen-probes";
  function show(which) {
    document.documentElement.dataset.filter = which;
    for (const button of document.querySelectorAll("[data-shows]")) {
      button.setAttribute("aria-pressed", String(button.dataset.shows === which));
    }
    sessionStorage.setItem(KEPT, which);
  }
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-shows]");
    if (button) show(button.dataset.shows);
  });

  // A probe lights the words that its verdict rests on, and a word its probes.
  function evidence(node, isOn) {
    const probe = node.closest(".probe");
    const word = node.closest("mark[data-evidence]");
    for (const mark of probe ? document.querySelectorAll("mark[data-evidence]") : []) {
      if (mark.dataset.evidence.split(" ").includes(probe.id)) mark.classList.toggle("on", isOn);
    }
    for (const id of word ? word.dataset.evidence.split(" ").filter(Boolean) : []) {
      document.getElementById(id)?.classList.toggle("on", isOn);
    }
  }
  for (const [name, isOn] of [["pointerover", true], ["focusin", true], ["pointerout", false], ["focusout", false]]) {
    document.addEventListener(name, (event) => {
      if (event.target.closest) evidence(event.target, isOn);
    });
  }

  // Folds of filters stay as they were left.
  function remember() {
    for (const fold of document.querySelectorAll("details[data-remembers]")) {
      const key = `snellen-fold-${fold.dataset.remembers}`;
      const kept = sessionStorage.getItem(key);
      if (kept !== null) fold.open = kept === "open";
      else if (matchMedia("(max-width: 56rem)").matches) fold.open = false;
      fold.addEventListener("toggle", () => sessionStorage.setItem(key, fold.open ? "open" : "shut"));
    }
  }
  document.addEventListener("DOMContentLoaded", () => {
    if (document.querySelector("[data-shows]")) show(sessionStorage.getItem(KEPT) || "all");
    remember();
    const current = document.querySelector(".probe.current");
    if (current) {
      if (current.matches(".right, .skipped")) show("all");
      current.scrollIntoView({block: "nearest"});
      current.focus({preventScroll: true});
    }
  });
  document.addEventListener("htmx:afterSettle", remember);

  // What is not asked for does not stand in the address.
  document.addEventListener("htmx:configRequest", (event) => {
    const {parameters} = event.detail;
    for (const [name, value] of [...parameters.entries()]) {
      if (value === "") parameters.delete(name);
    }
  });
  document.addEventListener("submit", (event) => {
    for (const field of event.target.querySelectorAll("input, select")) {
      if (field.value === "" && event.target.method === "get") field.disabled = true;
    }
  });
})();
