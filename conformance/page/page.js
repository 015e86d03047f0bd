// Draws the tables from the data in the page. Whatever a target said is set as text, never as markup.

const data = await unpacked(document.getElementById("data").textContent);
const [TARGET, OP, ID, DTYPE, BINDING, VERDICT, SHOULD, RATIO, CASES, REASON, KINDS, MORE] = Array(12).keys();
const SIGNS = {fail: "✗", error: "!", advice: "△", deviates: "≈", "not-exercised": "·", unsupported: "–", pass: "✓"};
const OF_ALL = "CM-";
const at = (id) => document.getElementById(id);

async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text.trim()), (one) => one.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
}

function make(tag, attributes, ...children) {
  const one = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) one.setAttribute(name, value);
  one.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return one;
}

function drawn(tag, attributes, text) {
  const one = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) one.setAttribute(name, value);
  if (text !== undefined) one.textContent = text;
  return one;
}

const number = (ratio) => (ratio === "inf" ? Infinity : ratio === "nan" ? Infinity : ratio);

const inEnvelopes = (ratio) => (number(ratio) === Infinity ? "beyond any envelope" : `${inFull(ratio)} ${ratio > 1 ? "times" : "of"} the envelope`);

function shown(ratio) {
  if (ratio === null || typeof ratio === "string") return ratio === null ? "" : ratio;
  if (ratio === 0) return "0";
  if (ratio < 0.01) return "<.01";
  if (ratio < 10) return ratio.toFixed(2);
  return ratio < 1e4 ? String(ratio) : ratio.toExponential(0).replace("+", "");
}

// Where there is room for a ratio below 0.01.
const inFull = (ratio) => (ratio > 0 && ratio < 0.01 ? String(ratio) : shown(ratio));

// -- cells: the results of a target in a requirement and dtype, the gravest first ---------------------------------

const cells = new Map();
for (const row of data.rows) {
  const key = [row[TARGET], row[OP], row[ID], row[DTYPE]].join("\n");
  if (!cells.has(key)) cells.set(key, []);
  cells.get(key).push(row);
}
const magnitude = (row) => (row[RATIO] === null ? -1 : number(row[RATIO]));
for (const rows of cells.values()) rows.sort((a, b) => a[VERDICT] - b[VERDICT] || magnitude(b) - magnitude(a));

function place(row) {
  const words = [data.targets[row[TARGET]].label, ...(row[ID].startsWith(OF_ALL) ? [row[OP]] : []), row[ID], row[DTYPE]];
  return "#" + words.map(encodeURIComponent).join("/");
}

function found(hash) {
  let words;
  try { words = hash.slice(1).split("/").map(decodeURIComponent); } catch { return null; }
  if (words.length < 3) return null;
  const target = data.targets.findIndex((one) => one.label === words[0]);
  const [id, dtype] = words.slice(-2);
  for (const rows of cells.values()) {
    const row = rows[0];
    if (row[TARGET] === target && row[ID] === id && row[DTYPE] === dtype && (words.length < 4 || row[OP] === words[1])) return row;
  }
  return null;
}

// -- the tables: told at once, and drawn one after the other while nothing else is to do ---------------------------

const buttons = new Map();
const tables = [];
const tableOf = new Map();

function tell() {
  const ids = Object.keys(data.requirements);
  const sections = new Map();
  for (const [key, rows] of cells) {
    const row = rows[0], name = row[TARGET] + "\n" + row[OP];
    if (!sections.has(name)) sections.set(name, {target: row[TARGET], op: row[OP], ids: new Map()});
    const lines = sections.get(name).ids;
    if (!lines.has(row[ID])) lines.set(row[ID], new Map());
    lines.get(row[ID]).set(row[DTYPE], key);
  }
  const order = [...sections.values()].sort(
    (a, b) => a.target - b.target || data.operators.indexOf(a.op) - data.operators.indexOf(b.op));
  for (const section of order) {
    const lines = ids.filter((id) => section.ids.has(id)).map((id) => {
      const [title, sentence] = data.requirements[id];
      return {id, title, byDtype: section.ids.get(id), keys: [...section.ids.get(id).values()], text: [id, title, sentence].join(" ").toLowerCase(), hidden: false, row: null};
    });
    const one = {target: section.target, op: section.op, lines, box: make("div", {class: "group"}), drawn: false};
    one.box.style.minHeight = `${2 * lines.length}rem`;
    tables.push(one);
    for (const line of lines) for (const key of line.keys) tableOf.set(key, one);
  }
  at("tables").append(...tables.map((one) => one.box));
}

function draw(one) {
  if (!one || one.drawn) return;
  one.drawn = true;
  const dtypes = data.dtypes.filter((dtype) => one.lines.some((line) => line.byDtype.has(dtype)));
  const body = make("tbody");
  for (const line of one.lines) {
    const should = cells.get(line.keys[0])[0][SHOULD];
    const heading = make("th", {scope: "row"}, make("span", {class: "id"}, line.id), " ", (should ? "(should) " : "") + line.title);
    line.row = make("tr", {}, heading);
    for (const dtype of dtypes) {
      const key = line.byDtype.get(dtype);
      line.row.append(make("td", {}, key === undefined ? "" : cell(key, cells.get(key)[0])));
    }
    line.row.hidden = line.hidden;
    body.append(line.row);
  }
  const columns = make("tr", {}, make("th", {scope: "col"}, "requirement"), ...dtypes.map((dtype) => make("th", {scope: "col"}, dtype)));
  const caption = make("caption", {}, `${one.op} · ${data.targets[one.target].label}`);
  const table = make("table", {class: "matrix"}, caption, make("thead", {}, columns), body);
  table.style.maxWidth = `${44 + 6.5 * dtypes.length}rem`;  // a number stays near its requirement
  one.box.replaceChildren(table);
  one.box.style.minHeight = "";
  const first = body.querySelector(".cell");
  if (first) first.tabIndex = 0;
}

function drawTheRest() {
  const next = tables.find((one) => !one.drawn);
  if (!next) {
    document.documentElement.dataset.drawn = "";
    return;
  }
  draw(next);
  (window.requestIdleCallback || setTimeout)(drawTheRest);
}

function cell(key, row) {
  const verdict = data.verdicts[row[VERDICT]], ratio = shown(row[RATIO]);
  const numbered = row[RATIO] !== null && ["pass", "deviates", "fail", "advice"].includes(verdict);
  const said = `${row[ID]} ${row[DTYPE]}: ${verdict}` + (numbered ? `, ${inEnvelopes(row[RATIO])}` : "");
  const one = make("button", {type: "button", class: `cell ${verdict}`, tabindex: "-1", "aria-label": said}, SIGNS[verdict] + (numbered ? ` ${ratio}` : ""));
  one.dataset.key = key;
  buttons.set(key, one);
  return one;
}

at("tables").addEventListener("click", (event) => {
  const one = event.target.closest(".cell");
  if (one) location.hash = place(cells.get(one.dataset.key)[0]);
});

at("tables").addEventListener("keydown", (event) => {
  const steps = {ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1]};
  const one = event.target.closest(".cell");
  if (!one || !(event.key in steps)) return;
  event.preventDefault();
  const [down, right] = steps[event.key];
  let row = one.closest("tr"), column = one.parentElement.cellIndex + right;
  if (down) do row = down > 0 ? row.nextElementSibling : row.previousElementSibling; while (row && row.hidden);
  const next = row && row.cells[column] && row.cells[column].querySelector(".cell");
  if (next) focusOn(next);
});

function focusOn(one) {
  for (const other of one.closest("table").querySelectorAll(".cell[tabindex='0']")) other.tabIndex = -1;
  one.tabIndex = 0;
  one.focus();
}

// -- filters -----------------------------------------------------------------------------------------------------

function choices() {
  data.targets.forEach((one, place) => at("target").append(make("option", {value: place}, one.label)));
  for (const op of data.operators) at("operator").append(make("option", {value: op}, op));
  data.verdicts.forEach((name, place) => at("verdict").append(make("option", {value: place}, name)));
}

function filter() {
  const target = at("target").value, op = at("operator").value, level = at("level").value, verdict = at("verdict").value;
  const words = at("text").value.toLowerCase().split(/\s+/).filter(Boolean);
  let count = 0, all = 0;
  for (const one of tables) {
    let any = false;
    const asked = (target === "" || Number(target) === one.target) && (op === "" || op === one.op);
    for (const line of one.lines) {
      const rows = line.keys.flatMap((key) => cells.get(key));
      const here = asked
        && (level === "" || rows.some((row) => row[SHOULD] === Number(level)))
        && (verdict === "" || rows.some((row) => row[VERDICT] === Number(verdict)))
        && words.every((word) => line.text.includes(word) || rows.some((row) =>
          (row[REASON] >= 0 && data.words[row[REASON]].toLowerCase().includes(word)) || data.words[row[BINDING]].toLowerCase().includes(word)));
      line.hidden = !here;
      if (line.row) line.row.hidden = !here;
      any = any || here;
      count += here ? 1 : 0;
    }
    all += one.lines.length;
    one.box.hidden = !any;
  }
  at("count").textContent = `${count} of ${all} requirements`;
}

at("filters").addEventListener("input", filter);
at("filters").addEventListener("submit", (event) => event.preventDefault());
at("filters").addEventListener("reset", () => setTimeout(filter));

// -- what stands behind a cell -----------------------------------------------------------------------------------

function detail(row) {
  const [title, sentence, page] = data.requirements[row[ID]];
  const heading = make("h2", {id: "detail-title", tabindex: "-1"}, `${row[ID]} ${title}`);
  const body = [heading, make("p", {}, sentence),
    make("p", {class: "quiet"}, `${data.targets[row[TARGET]].label} · ${row[OP]} · ${row[DTYPE]} · ${row[SHOULD] ? "SHOULD" : "MUST"} · `,
      page ? make("a", {href: page}, "in the specification") : "", " · ", make("a", {href: place(row)}, "link to this"))];
  for (const one of cells.get([row[TARGET], row[OP], row[ID], row[DTYPE]].join("\n"))) body.push(binding(one));
  at("detail-body").replaceChildren(...body);
}

function binding(row) {
  const verdict = data.verdicts[row[VERDICT]], more = row[MORE];
  const one = make("section", {class: "one"}, make("h3", {}, make("span", {class: verdict}, `${SIGNS[verdict]} ${verdict} `), data.words[row[BINDING]]));
  const say = (text, kind) => text && one.append(make("p", kind ? {class: kind} : {}, text));
  say(`${row[CASES].toLocaleString("en")} ${row[CASES] === 1 ? "case" : "cases"} judged` + (more.device ? ` on ${more.device}` : "") + (more.kept ? `; kept from ${more.kept}` : ""), "quiet");
  if (row[REASON] >= 0) say(data.words[row[REASON]]);
  if (row[RATIO] !== null) one.append(margin(row[RATIO]));
  if (row[KINDS].length > 2) one.append(plot(row[KINDS]));
  for (const [reason, scope, links, times] of more.known || []) {
    say(`Known: ${reason}${scope ? ` [${scope}]` : ""}${times ? "" : " (did not show)"}`);
    for (const link of links) one.append(source(link));
  }
  if (more.upstream) {
    say(`${more.upstream.binding} does the same: ${more.upstream.reason}`);
    for (const link of more.upstream.links) one.append(source(link));
  }
  for (const [reason, count] of Object.entries(more.declined || {})) say(`Declined on ${count} cases: ${reason}`, "quiet");
  if (more.same) say(`It fails on the same case, for the same reason, as ${more.same}.`);
  if (more.cause) say(`Its cause: ${more.cause}`);
  if (more.smallest) one.append(make("h4", {}, "The smallest case"),
    make("dl", {class: "case"}, ...more.smallest.flatMap(([name, words]) => [make("dt", {}, name), make("dd", {}, words)])));
  if (more.code) one.append(make("h4", {}, "To see it without normspec"), copied(more.code));
  if (more.again) one.append(make("h4", {}, "To judge it again"), copied(more.again));
  if (more.trace) one.append(make("pre", {}, more.trace));
  return one;
}

function source(link) {  // an address, perhaps with words after it
  const [address, words] = /^(https?:\S+)(.*)$/s.exec(link)?.slice(1) ?? ["", link];
  return make("p", {}, address && make("a", {href: address}, address), words);
}

function copied(text) {
  return make("div", {class: "copied"}, make("pre", {tabindex: "0"}, text), make("button", {type: "button", class: "copy"}, "Copy"));
}

// Ratios on a logarithmic scale from 0.001 to 1000; what is smaller or larger lies at its ends.
const LOW = -3, HIGH = 3;
const along = (ratio) => (Math.min(HIGH, Math.max(LOW, Math.log10(Math.max(number(ratio), 1e-300)))) - LOW) / (HIGH - LOW);

function margin(ratio) {
  const svg = drawn("svg", {viewBox: "0 0 600 14", preserveAspectRatio: "none", role: "img", "aria-label": `the worst error is ${inEnvelopes(ratio)}`, class: "plot"});
  svg.append(drawn("rect", {x: 0, y: 2, width: 600, height: 10, class: "room"}),
    drawn("rect", {x: 0, y: 2, width: 600 * along(ratio), height: 10, class: number(ratio) > 1 ? "beyond" : "within"}),
    drawn("line", {x1: 600 * along(1), x2: 600 * along(1), y1: 0, y2: 14, class: "limit"}));
  return make("div", {class: "bar"}, svg, make("span", {class: "bar-value"}, inEnvelopes(ratio)));
}

function plot(kinds) {
  const pairs = [];
  for (let k = 0; k < kinds.length; k += 2) pairs.push([data.words[kinds[k]], kinds[k + 1]]);
  pairs.sort((a, b) => number(b[1]) - number(a[1]));
  // Drawn as wide as it is shown on a phone: scaled down, nobody could read it.
  const narrow = window.innerWidth < 640;
  const left = narrow ? 90 : 150, width = narrow ? 200 : 430, step = 18, height = step * pairs.length + 24;
  const svg = drawn("svg", {viewBox: `0 0 ${left + width + 60} ${height}`, class: "plot", role: "img", "aria-label": "The worst error by kind of data: " + pairs.map(([kind, ratio]) => `${kind} ${inFull(ratio)}`).join(", ")});
  for (let power = LOW; power <= HIGH; power++) {
    const x = left + width * (power - LOW) / (HIGH - LOW);
    svg.append(drawn("line", {x1: x, x2: x, y1: 0, y2: height - 18, class: power ? "axis" : "limit"}));
    if (!narrow || power % HIGH === 0) svg.append(
      drawn("text", {x, y: height - 4, "text-anchor": "middle", class: "faint"}, power === LOW ? "≤ 0.001" : power === HIGH ? "≥ 1000" : power ? String(10 ** power) : "envelope"));
  }
  pairs.forEach(([kind, ratio], place) => {
    const y = place * step + 9, x = left + width * along(ratio);
    svg.append(drawn("text", {x: left - 8, y: y + 4, "text-anchor": "end"}, kind),
      drawn("circle", {cx: x, cy: y, r: 4, class: number(ratio) > 1 ? "beyond" : "within"}),
      drawn("text", {x: left + width + 14, y: y + 4, class: "faint"}, inFull(ratio)));
  });
  return make("figure", {}, make("figcaption", {class: "quiet"}, "The worst error by kind of data, in envelopes"), svg);
}

// -- deep links and copying --------------------------------------------------------------------------------------

let current = null;

function follow() {
  const row = found(location.hash);
  if (current) current.removeAttribute("aria-current");
  current = null;
  if (!row) return at("detail").open && at("detail").close();
  const key = [row[TARGET], row[OP], row[ID], row[DTYPE]].join("\n");
  draw(tableOf.get(key));
  const one = buttons.get(key);
  if (one.closest("tr").hidden || one.closest(".group").hidden) { at("filters").reset(); filter(); }
  current = one;
  one.setAttribute("aria-current", "true");
  detail(row);
  one.scrollIntoView({block: "center"});
  if (!at("detail").open) at("detail").showModal();
  at("detail").scrollTop = 0;
  at("detail-title").focus();
}

at("detail").addEventListener("close", () => {
  const one = current;
  if (found(location.hash)) history.replaceState(null, "", location.pathname + location.search);
  if (one) { one.removeAttribute("aria-current"); focusOn(one); }
  current = null;
});
at("detail").addEventListener("click", (event) => event.target === at("detail") && at("detail").close());

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = make("textarea", {class: "unseen"});
    area.value = text;
    (at("detail").open ? at("detail") : document.body).append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}

document.addEventListener("click", async (event) => {
  const one = event.target.closest(".copy");
  if (!one) return;
  await copy(one.previousElementSibling.textContent);
  one.textContent = "Copied";
  at("said").textContent = "Copied";
  setTimeout(() => { one.textContent = "Copy"; at("said").textContent = ""; }, 2000);
});

choices();
tell();
draw(tables[0]);
filter();
follow();
window.addEventListener("hashchange", follow);
window.addEventListener("beforeprint", () => tables.forEach(draw));
document.documentElement.dataset.ready = String(Math.round(performance.now()));
drawTheRest();
