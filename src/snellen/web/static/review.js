"use strict";
// Review pages: the keys that are more than one letter, and the edit that opens with its first field.
(() => {
  const editing = () => document.getElementById("editing");
  document.addEventListener("keydown", (event) => {
    const box = editing();
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && box && box.open) {
      event.preventDefault();
      box.querySelector("button[value=edit]").click();
      return;
    }
    const isTyping = event.target.closest("input:not([type=checkbox]), textarea, select");
    if (event.key === "Enter" && event.target.id === "note") {
      // A note is not a decision: Enter in it must not accept.
      event.preventDefault();
      event.target.blur();
      return;
    }
    if (isTyping || document.querySelector("dialog[open]")) return;
    const isUndo = event.key === "Backspace" || (event.key === "z" && (event.ctrlKey || event.metaKey));
    const wanted = isUndo ? document.getElementById("undo") : event.key === " " ? document.getElementById("skip") : null;
    if (!wanted || event.target.closest("button, summary, label, a, [type=checkbox]") && event.key === " ") return;
    event.preventDefault();
    wanted.click();
  });
  document.addEventListener("toggle", (event) => {
    if (event.target === editing() && event.target.open) event.target.querySelector("textarea, input").focus();
  }, true);
  // The region that the task is about stays lit.
  const own = document.querySelector(".where [data-region]");
  if (own) {
    for (const node of document.querySelectorAll(".stage [data-region]")) {
      if (node.dataset.region !== own.dataset.region) continue;
      node.classList.add("own");
      if (node.dataset.source) node.src = node.dataset.source;
    }
  }
  // A form that is sent twice would decide on the next task without a look at it.
  document.addEventListener("submit", (event) => {
    if (event.target.dataset.sent) event.preventDefault();
    event.target.dataset.sent = "yes";
  });
  window.addEventListener("pageshow", () => {
    for (const form of document.forms) delete form.dataset.sent;
  });
})();
