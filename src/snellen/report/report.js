"use strict";
(() => {
  const source = document.getElementById("gallery-data");
  const data = JSON.parse(source.textContent);
  const STEP = 40;
  const KIND_WORDS = {wrong: "wrong", unscored: "unscored", abstained: "could not tell"};
  const REPLY_WORDS = {rubric: "Description", direct: "Reply"};

  // Every foreign text becomes text content, and never markup.
  function make(name, kind, words) {
    const node = document.createElement(name);
    if (kind) node.className = kind;
    if (words !== undefined) node.textContent = words;
    return node;
  }
  function drawn(name, attributes) {
    const node = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, String(value));
    return node;
  }

  // Opens all folds for paper, and puts them back afterwards.
  let opened = [];
  window.addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open]):not(.screen-only)")];
    for (const fold of opened) fold.open = true;
  });
  window.addEventListener("afterprint", () => {
    for (const fold of opened) fold.open = false;
    opened = [];
  });

  const cards = document.getElementById("cards");
  if (!cards) return;
  const entries = data.failures.map((failure) => {
    const run = data.runs[failure.run];
    const probe = data.probes[failure.probe];
    return {failure, run, probe, caption: data.captions[failure.caption]};
  });
  const TESTS = {
    protocol: (e) => [`${e.run.protocol}: ${e.run.benchmark}`],
    model: (e) => [e.run.model],
    kind: (e) => [KIND_WORDS[e.failure.kind]],
    category: (e) => [e.probe.category],
    domain: (e) => e.probe.domains,
  };
  const selects = {};
  for (const name of Object.keys(TESTS)) selects[name] = document.getElementById(`filter-${name}`);
  const search = document.getElementById("filter-text");
  const found = document.getElementById("found");
  const more = document.getElementById("more");
  let shown = STEP;

  function haystack(entry) {
    const {failure, run, probe, caption} = entry;
    return [run.model, probe.item, probe.id, probe.question, probe.answer, ...probe.options,
      failure.judge, failure.reason, caption].join("\n").toLowerCase();
  }
  for (const entry of entries) entry.haystack = haystack(entry);

  for (const [name, labels] of Object.entries(TESTS)) {
    const counts = new Map();
    for (const entry of entries) {
      for (const label of labels(entry)) {
        if (label) counts.set(label, (counts.get(label) || 0) + 1);
      }
    }
    for (const label of [...counts.keys()].sort((a, b) => a.localeCompare(b))) {
      const option = make("option", "", `${readable(label)} (${counts.get(label)})`);
      option.value = label;
      selects[name].append(option);
    }
    selects[name].disabled = counts.size < 2;
  }

  function readable(label) {
    return label.replaceAll("_", " ");
  }
  function matches(entry) {
    for (const [name, labels] of Object.entries(TESTS)) {
      const wanted = selects[name].value;
      if (wanted && !labels(entry).includes(wanted)) return false;
    }
    const words = search.value.trim().toLowerCase();
    return !words || entry.haystack.includes(words);
  }

  function picture(digest, box, name) {
    const stored = data.pictures[digest];
    if (!stored.src) return make("div", "missing", `The picture cannot be shown: ${stored.error}`);
    const frame = make("div", "picture");
    const image = make("img");
    image.src = stored.src;
    image.width = stored.width;
    image.height = stored.height;
    image.alt = box ? `Picture ${name}, the region asked about is framed` : `Picture ${name}`;
    frame.append(image);
    if (box) {
      const [top, left, bottom, right] = box;
      const overlay = drawn("svg", {viewBox: "0 0 1000 1000", preserveAspectRatio: "none", "aria-hidden": "true"});
      for (const kind of ["under", "over"]) {
        overlay.append(drawn("rect", {class: kind, x: left, y: top, width: right - left, height: bottom - top}));
      }
      frame.append(overlay);
    }
    return frame;
  }

  function optionLine(option, k, entry) {
    const letter = String.fromCharCode(65 + k);
    const isReference = letter === entry.probe.answer;
    const isSaid = letter === entry.failure.verdict;
    const line = make("li", isReference ? "reference" : isSaid ? "said" : "", `${letter}. ${option}`);
    line.dir = "auto";
    if (isReference) line.append(make("em", "", "\u2713 right"));
    if (isSaid && !isReference) line.append(make("em", "", "\u2717 the judge's answer"));
    return line;
  }

  function verdictWords(entry) {
    const {failure, run, probe} = entry;
    if (failure.kind === "unscored") return `none: ${readable(failure.reason || "unknown reason")}`;
    if (failure.kind === "abstained") return `${failure.verdict}: cannot be determined from the caption`;
    const verdict = run.protocol === "reading" ? failure.verdict : failure.verdict ? "true" : "false";
    const said = verdict === null ? "none" : String(verdict);
    return failure.reason ? `${said} (${readable(failure.reason)})` : said;
  }

  function facts(entry) {
    const {failure, run, probe} = entry;
    const rows = [["Verdict", verdictWords(entry)]];
    if (run.protocol === "direct") rows.push(["Reference", probe.answer]);
    if (run.protocol === "direct" && probe.hint) rows.push(["Hint", probe.hint]);
    if (failure.status) rows.push(["Reply", readable(failure.status)]);
    if (failure.repeat) rows.push(["Repeat", String(failure.repeat + 1)]);
    return rows.flatMap(([name, value]) => {
      const held = make("dd", "", value);
      held.dir = "auto";
      return [make("dt", "", name), held];
    });
  }

  // Fills a copy of the card template; slots without content go.
  function card(entry) {
    const {failure, run, probe, caption} = entry;
    const node = document.getElementById("card").content.cloneNode(true);
    const slot = (name) => node.querySelector(`[data-slot=${name}]`);
    const pictures = probe.pictures.map((digest) => picture(digest, probe.box, probe.item));
    const missing = probe.pictured ? "no picture in this report" : "asked without a picture";
    slot("pictures").append(...(pictures.length ? pictures : [make("div", "missing", missing)]));
    slot("kind").classList.add(failure.kind);
    slot("kind").textContent = KIND_WORDS[failure.kind];
    slot("model").textContent = run.model;
    if (!run.low) slot("fidelity").remove();
    slot("place").textContent = [
      run.benchmark, readable(probe.category), ...probe.domains, `${probe.item} / ${probe.id}`,
    ].filter(Boolean).join(" \u00b7 ");
    slot("question").textContent = probe.question;
    slot("options").append(...probe.options.map((option, k) => optionLine(option, k, entry)));
    if (!probe.options.length) slot("options").remove();
    slot("facts").append(...facts(entry));
    slot("caption").firstElementChild.textContent = REPLY_WORDS[run.protocol] || "Caption";
    slot("caption").lastElementChild.textContent = caption || "(nothing)";
    slot("judge").lastElementChild.textContent = failure.judge;
    if (!failure.judge) slot("judge").remove();
    return node;
  }

  function show() {
    const chosen = entries.filter(matches);
    cards.replaceChildren(...chosen.slice(0, shown).map(card));
    more.hidden = chosen.length <= shown;
    const visible = Math.min(shown, chosen.length);
    found.textContent = chosen.length
      ? `${visible} of ${chosen.length} shown`
      : "Nothing matches: choose less, or clear the filters.";
  }
  function restart() {
    shown = STEP;
    show();
  }
  for (const select of Object.values(selects)) select.addEventListener("change", restart);
  search.addEventListener("input", restart);
  document.getElementById("filter-clear").addEventListener("click", () => {
    for (const select of Object.values(selects)) select.value = "";
    search.value = "";
    restart();
    search.focus();
  });
  more.addEventListener("click", () => {
    const first = shown;
    shown += STEP;
    show();
    const next = cards.children[first];
    if (next) {
      next.tabIndex = -1;
      next.focus();
    }
  });
  restart();
})();
