/* The table of items and what one item shows. All text is written as text, never as HTML. */
"use strict";
(async () => {
  const unpack = async (id) => {
    const text = document.getElementById(id).textContent.trim();
    const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return JSON.parse(await new Response(stream).text());
  };
  /* An element with attributes and children; a text is a text. */
  const make = (tag, given = {}, ...children) => {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(given)) {
      if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
      else if (value !== false && value != null) made.setAttribute(name, value === true ? "" : value);
    }
    made.append(...children.flat().filter((child) => child != null && child !== ""));
    return made;
  };
  /* --- charts as files, in the colours that the reader sees ------------------------------------ */

  const drawing = (svg) => {
    const style = getComputedStyle(document.documentElement);
    const ground = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    for (const [name, value] of [["width", "100%"], ["height", "100%"], ["fill", "var(--page)"]]) ground.setAttribute(name, value);
    const copy = svg.cloneNode(true);
    copy.prepend(ground);
    return new XMLSerializer().serializeToString(copy)
      .replace(/var\((--[\w-]+)\)/g, (_, name) => style.getPropertyValue(name).trim());
  };
  const save = (blob, name) => {
    const link = make("a", { href: URL.createObjectURL(blob), download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  };
  for (const figure of document.querySelectorAll("figure")) {
    const name = figure.getAttribute("aria-label").replace(/[^\w-]+/g, "_");
    const svg = figure.querySelector("svg");
    const text = () => drawing(svg);
    const asPicture = async () => {
      const picture = new Image();
      picture.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text())}`;
      await picture.decode();
      const [width, height] = ["width", "height"].map((side) => 2 * svg[side].baseVal.value);
      const canvas = Object.assign(document.createElement("canvas"), { width, height });
      canvas.getContext("2d").drawImage(picture, 0, 0, width, height);
      canvas.toBlob((blob) => save(blob, `${name}.png`), "image/png");
    };
    const asText = () => save(new Blob([text()], { type: "image/svg+xml" }), `${name}.svg`);
    figure.after(make("p", { class: `save ${figure.className}` },
      make("button", { type: "button", onclick: asText, "aria-label": `SVG of ${name}` }, "SVG"),
      make("button", { type: "button", onclick: asPicture, "aria-label": `PNG of ${name}` }, "PNG")));
  }
  const [index, media] = await Promise.all([unpack("data-index"), unpack("data-media")]);
  const sides = index.sides;
  const several = sides.length > 1;
  const rows = index.id.map((id, n) => {
    const { name: task, metric, binary } = index.tasks[index.task[n]];
    const row = { n, id, task, metric, binary, video: index.video[n] };
    row.split = index.split[n].join(" · ");
    sides.forEach((_, k) => {
      row[`value${k}`] = index.of[k].value[n];
      row[`status${k}`] = index.of[k].status[n];
      row[`reply${k}`] = index.of[k].reply[n];
      row[`rule${k}`] = index.of[k].read_by[n];
    });
    return row;
  });

  /* --- one item ------------------------------------------------------------------------------ */

  const shown = (value) => (value == null ? "no value" : Number.isInteger(value) ? `${value}` : value.toFixed(3));
  /* Right or wrong, where an item is worth 1 or 0 and nothing between. */
  const isRight = (row, k) => row.binary && row[`value${k}`] === 1;
  const isWrong = (row, k) => row.binary && row[`value${k}`] === 0;
  const worth = (row, k, name = "") => {
    const status = row[`status${k}`];
    if (status === "") return make("span", { class: "soft" }, "not in this run");
    const number = `${name}${shown(row[`value${k}`])}`;
    const text = isRight(row, k) ? "✓ right" : isWrong(row, k) ? "✗ wrong" : number;
    const told = status === "ok" ? text : `${text} (${status})`;
    return make("span", { class: isRight(row, k) ? "good" : isWrong(row, k) ? "bad" : "" }, told);
  };
  const plain = (value) => (typeof value === "string" ? value : JSON.stringify(value, null, 1));
  const listed = (found) => {
    const entries = Object.entries(found || {}).filter(([, value]) => value != null && value !== "");
    if (!entries.length) return null;
    return make("dl", {}, entries.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, plain(value))]));
  };
  const folded = (title, ...inside) =>
    inside.some((one) => one) ? make("details", {}, make("summary", {}, title), ...inside) : null;
  const wave = (peaks) => {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("viewBox", `0 0 ${peaks.length} 100`);
    svg.setAttribute("preserveAspectRatio", "none");
    svg.setAttribute("class", "wave");
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", "the sound's loudness over time");
    const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
    path.setAttribute("d", peaks.map((peak, x) => `M${x + 0.5} ${50 - peak / 2 - 0.5}V${50 + peak / 2 + 0.5}`).join(""));
    path.setAttribute("stroke", "currentColor");
    svg.append(path);
    return svg;
  };
  const seen = (place) => {
    if (place == null) return [];
    const one = media[place];
    const about = `frames of the model's input (${one.frames} in all)`;
    return [
      one.strip ? make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "frames" },
        make("img", { class: "strip", src: one.strip, alt: about })) : null,
      one.strip ? make("p", { class: "soft" }, about) : null,
      one.wave.length ? wave(one.wave) : null,
      one.file ? make("video", { controls: true, preload: "metadata", src: one.file }) : null,
    ];
  };
  const answered = (row, one, k) =>
    make("div", {},
      make("h3", {}, sides[k]),
      make("p", {}, worth(row, k, row.metric && `${row.metric}: `)),
      ...(one ? [
        make("pre", {}, one.reply || "(empty)"),
        listed(one.scores),
        one.claims.length ? make("ol", {}, one.claims.map((claim) => make("li", {}, claim.text, " ",
          make("span", { class: "soft" }, Object.entries(claim.labels).map(([name, label]) => `${name}: ${label ?? "-"}`).join(", "))))) : null,
        ...one.verdicts.map((verdict) => make("div", {},
          make("p", {}, make("b", {}, `${verdict.name}: `), verdict.status === "ok" ? shown(verdict.score) : verdict.status),
          verdict.reason ? make("p", {}, verdict.reason) : null,
          folded("reply of the judge", verdict.raw ? make("pre", {}, verdict.raw) : null))),
        folded("parsed reply and measurements", listed(one.read), listed({ media: one.media })),
      ] : []));
  const dialog = document.getElementById("item");
  let table, at = null;
  const pool = (row) => {
    const key = index.pool[row.n];
    const own = key ? rows.filter((other) => index.pool[other.n] === key && other.task === row.task) : [];
    if (own.length < 2) return null;
    return sides.map((label, k) => {
      const asked = own.filter((other) => other[`status${k}`] !== "").length;
      if (!asked) return make("div", { class: "pool" }, `${label}: `, make("span", { class: "soft" }, "not in this run"));
      const right = own.filter((other) => isRight(other, k)).length;
      const whole = right === own.length;
      const state = asked < own.length ? "incomplete" : whole ? "right" : "wrong";
      return make("div", { class: "pool" },
        make("span", {}, `${label}: `, make("b", { class: whole ? "good" : "bad" },
          `${whole ? "✓" : "✗"} pool ${state}, ${right} of ${asked}${asked < own.length ? " in this run" : ""}`)),
        own.map((other, nth) => {
          const mark = isRight(other, k) ? "✓" : isWrong(other, k) ? "✗" : other[`status${k}`] === "" ? "not in this run" : "–";
          return make("button", { type: "button", "aria-current": other === row ? "true" : null,
            "aria-label": `item ${nth + 1} of the pool: ${mark}`, onclick: () => open(other) }, `${nth + 1} ${mark}`);
        }));
    });
  };
  const chunks = new Map();
  const open = async (row) => {
    at = row;
    const number = Math.floor(row.n / index.chunk);
    if (!chunks.has(number)) chunks.set(number, unpack(`chunk-${number}`));
    const one = (await chunks.get(number))[row.n % index.chunk];
    if (at !== row) return;
    const letters = (nth) => (String.fromCharCode(65 + nth) === one.answer ? " ✓" : "");
    const button = (text, about, step) =>
      make("button", { type: "button", "aria-label": about, onclick: step }, text);
    dialog.replaceChildren(
      make("div", { class: "top" }, make("h2", {}, `${row.task} · ${row.id}`), make("div", {},
        button("‹", "previous item", () => move(-1)), button("›", "next item", () => move(1)),
        button("Close", "close", () => dialog.close()))),
      ...seen(index.media[row.n]).filter((part) => part),
      make("p", { class: "soft" }, [row.video, row.split].filter((text) => text).join(" · ")),
      ...(pool(row) || []),
      ...[
        one.question ? make("p", {}, make("b", {}, one.question)) : null,
        one.options ? make("ol", { class: "options" }, one.options.map((text, nth) =>
          make("li", letters(nth) ? { class: "good" } : {}, text, letters(nth)))) : null,
        one.references ? folded(`references (${one.references.length})`, make("ul", {}, one.references.map((text) => make("li", {}, plain(text))))) : null,
        one.facts ? folded(`facts (${one.facts.length})`, make("ol", {}, one.facts.map((text) => make("li", {}, plain(text))))) : null,
        folded("prompt", one.prompt ? make("pre", {}, one.prompt) : null),
        make("div", { class: "answers" }, one.sides.map((side, k) => answered(row, side, k))),
        folded("other fields", listed(one.more)),
      ].filter((part) => part));
    if (!dialog.open) dialog.showModal();
    dialog.scrollTop = 0;
  };
  const move = (step) => {
    const order = table.getRows("active").map((row) => row.getData());
    const next = order[order.indexOf(at) + step];
    if (next) open(next);
  };
  dialog.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step && !/^(VIDEO|INPUT)$/.test(event.target.tagName)) { event.preventDefault(); move(step); }
  });
  dialog.addEventListener("close", () => focus(at.n));
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });

  /* --- the table ----------------------------------------------------------------------------- */

  const text = (cell) => document.createTextNode(cell.getValue() ?? "");
  /* A title is HTML to the table unless something else writes it: a run's name is a text. */
  const titled = { titleFormatter: text, headerWordWrap: true };
  const column = (title, field, more = {}) => ({ title, field, formatter: text, ...titled, ...more });
  /* On a phone only what tells items apart. */
  const narrow = matchMedia("(max-width: 40rem)").matches;
  const wide = (...own) => (narrow ? [] : own);
  const end = (cell) => document.createTextNode(cell.getValue().replace(/^.*(?=.{20}$)/, "…"));
  const alike = (values) => [...new Set(values)].filter((value) => value).sort().map((value) => [value, value]);
  const rules = alike(index.of.flatMap((one) => one.read_by)); /* none of open answers */
  const columns = [
    ...wide(column("task", "task", { width: 130 })),
    column("item", "id", narrow ? { formatter: end, minWidth: 170 } : { width: 230 }),
    ...wide(column("category", "split", { width: 150 })),
    ...sides.flatMap((label, k) => [
      { title: several ? label : "result", field: `value${k}`, width: narrow ? 90 : 135, ...titled,
        formatter: (cell) => worth(cell.getRow().getData(), k) },
      ...wide(...(rules.length ? [column("read by", `rule${k}`, { width: 70 })] : []),
        column(several ? `reply of ${label}` : "reply", `reply${k}`, { minWidth: several ? 130 : 170 })),
    ]),
  ];
  const place = document.getElementById("table");
  const HEIGHT = 30; // pixels of a row
  table = new Tabulator(place, {
    data: rows, columns, index: "n", height: "70vh", rowHeight: HEIGHT, layout: "fitColumns",
    selectableRows: false, placeholder: "no item passes the filters",
    columnDefaults: { tooltip: false, resizable: "header" },
    rowFormatter: (row) => { Object.assign(row.getElement(), { tabIndex: -1, row }); },
  });
  table.on("rowClick", (_, row) => open(row.getData()));

  /* --- the table by keyboard: one stop of Tab, arrows between rows ----------------------------- */

  const focus = async (n) => {
    const order = table.getRows("active");
    const at = order.findIndex((row) => row.getIndex() === n);
    if (at < 0) return; /* the filters leave it out */
    const element = order[at].getElement();
    const holder = place.querySelector(".tabulator-tableholder");
    const lowest = at * HEIGHT, highest = lowest + HEIGHT - holder.clientHeight;
    holder.scrollTop = Math.min(Math.max(holder.scrollTop, highest), lowest);
    for (let frame = 0; frame < 20 && !element.isConnected; frame += 1) await new Promise(requestAnimationFrame);
    element.focus({ preventScroll: true });
  };
  /* Tabulator draws all rows again when it comes into view or changes its size: focus stays. */
  let current = null;
  document.addEventListener("focusin", (event) => { current = event.target.row?.getIndex() ?? null; });
  table.on("renderComplete", () => {
    if (current != null && document.activeElement === document.body) focus(current);
  });
  const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: 15, PageUp: -15, Home: -Infinity, End: Infinity };
  place.addEventListener("keydown", (event) => {
    const header = event.target.closest(".tabulator-col");
    const row = event.target.closest(".tabulator-row")?.row;
    if (header && (event.key === "Enter" || event.key === " ")) {
      event.preventDefault();
      header.querySelector(".tabulator-col-content").click();
    } else if (!header && event.key in steps) {
      event.preventDefault();
      const order = table.getRows("active");
      const from = row ? order.findIndex((one) => one.getIndex() === row.getIndex()) : -1;
      const next = order[row ? Math.min(Math.max(from + steps[event.key], 0), order.length - 1) : 0];
      if (next) focus(next.getIndex());
    } else if (row && (event.key === "Enter" || event.key === " ")) {
      event.preventDefault();
      open(row.getData());
    }
  });

  /* --- filters ------------------------------------------------------------------------------- */

  const form = document.getElementById("filters");
  const choice = (title, options) => {
    const select = make("select", { name: title }, make("option", { value: "" }, "all"),
      options.map(([value, label]) => make("option", { value }, label)));
    form.append(make("label", {}, title, select));
    return select;
  };
  const task = choice("task", index.tasks.map((one) => [one.name, one.name]));
  const category = choice("category", alike(index.split.flat()));
  const status = choice("status", alike(index.of.flatMap((one) => one.status)));
  const rule = rules.length ? choice("read by", rules) : { value: "" };
  const outcome = choice("result", [["right", "right"], ["wrong", "wrong"], ["other", "between, or none"]]
    .flatMap(([value, label]) => sides.map((side, k) => [`${value} ${k}`, several ? `${label}: ${side}` : label])));
  const flipped = several ? choice("flipped", sides.slice(1).flatMap((side, k) => [
    [`1 ${k + 1}`, `better: ${side}`], [`-1 ${k + 1}`, `worse: ${side}`]])) : { value: "" };
  const search = make("input", { type: "search", name: "search" });
  form.append(make("label", {}, "text", search));
  const results = { right: isRight, wrong: isWrong,
    other: (row, k) => !isRight(row, k) && !isWrong(row, k) };
  const passes = (row) => {
    if (task.value && row.task !== task.value) return false;
    if (category.value && !index.split[row.n].includes(category.value)) return false;
    if (status.value && !sides.some((_, k) => row[`status${k}`] === status.value)) return false;
    if (rule.value && !sides.some((_, k) => row[`rule${k}`] === rule.value)) return false;
    if (outcome.value) {
      const [kind, k] = outcome.value.split(" ");
      if (row[`status${k}`] === "" || !results[kind](row, k)) return false;
    }
    if (flipped.value) {
      const [sign, k] = flipped.value.split(" ").map(Number);
      const [before, after] = [row.value0, row[`value${k}`]];
      if (before == null || after == null || Math.sign(after - before) !== sign) return false;
    }
    const wanted = search.value.trim().toLowerCase();
    return !wanted || [row.id, ...sides.map((_, k) => row[`reply${k}`])]
      .some((one) => one.toLowerCase().includes(wanted));
  };
  const count = document.getElementById("count");
  const told = (n) => { count.textContent = `${n.toLocaleString("en")} of ${rows.length.toLocaleString("en")} items`; };
  table.on("dataFiltered", (_, found) => told(found.length));
  table.on("tableBuilt", () => {
    for (const header of place.querySelectorAll(".tabulator-col")) header.tabIndex = 0;
    told(rows.length);
    document.body.dataset.ready = "yes";
  });
  let waiting;
  const filter = () => {
    place.setAttribute("aria-busy", "true");
    clearTimeout(waiting);
    waiting = setTimeout(() => { waiting = null; table.setFilter(passes); }, 120);
  };
  table.on("renderComplete", () => { if (!waiting) place.removeAttribute("aria-busy"); });
  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
})();
