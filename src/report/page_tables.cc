// The page's script, third part: the table of scenarios, what was asked and what followed, what went wrong.
#include "report/write_report.h"

namespace ks::report {

const char* const kPageTables = R"js(
const view = {sort: "ratio", down: false, text: "", category: "", verdict: "", table: "best", all: false};
function forest(ratio, low, high) {
  const W = 190, H = 22, x = v => (Math.log(Math.min(Math.max(v, low), high)) - Math.log(low)) / (Math.log(high) - Math.log(low)) * (W - 16) + 8;
  const [value, from, to] = ratio, color = from >= 1 ? "var(--good)" : to < 1 ? "var(--bad)" : "var(--warn)";
  const svg = el("svg", {viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": `${ratioText(value)}, from ${fixed(from, 3)} to ${fixed(to, 3)}`});
  svg.append(el("line", {x1: x(1), x2: x(1), y1: 0, y2: H, stroke: "var(--line)", "stroke-width": 1.5}));
  svg.append(el("line", {x1: x(from), x2: Math.max(x(to), x(from) + 1), y1: H / 2, y2: H / 2, stroke: color, "stroke-width": 3}));
  svg.append(el("circle", {cx: x(value), cy: H / 2, r: 4.5, fill: color}));
  return svg;
}
function fastestOf(row) {
  let name = null;
  for (const [key, side] of Object.entries(row.baselines)) if (side.verdict === "correct" && side.time_us !== null && (name === null || side.time_us < row.baselines[name].time_us)) name = key;
  return name;
}
const columns = [
  {key: "name", label: "Scenario", value: r => r.name},
  {key: "category", label: "Category", value: r => r.category, hide: true},
  {key: "verdict", label: "Verdict", value: r => r.candidate.verdict},
  {key: "ratio", label: "Ratio", num: true, value: r => r.ratio.fastest ? r.ratio.fastest[0] : null},
  {key: "interval", label: "95 % interval", value: r => r.ratio.fastest ? r.ratio.fastest[1] : null},
  {key: "time", label: "Ours", num: true, value: r => r.candidate.time_us},
  {key: "reference", label: "Fastest right baseline", num: true, value: r => fastestOf(r) === null ? null : r.baselines[fastestOf(r)].time_us},
  {key: "bound", label: "of the bound", num: true, hide: true, value: r => r.bound_us !== null && r.candidate.time_us ? r.bound_us / r.candidate.time_us : null},
];
function orderedRows(table) {
  const column = columns.find(c => c.key === view.sort);
  const words = view.text.toLowerCase().split(/\s+/).filter(Boolean);
  const rows = table.rows.filter(r => (!view.category || r.category === view.category) && (!view.verdict || r.candidate.verdict === view.verdict) &&
    words.every(w => (r.name + " " + r.category + " " + r.candidate.verdict + " " + Object.values(r.values).join(" ")).toLowerCase().includes(w)));
  return rows.sort((a, b) => {
    const p = column.value(a), q = column.value(b);
    if (p === null || q === null) return (p === null) - (q === null);
    return (typeof p === "string" ? p.localeCompare(q) : p - q) * (view.down ? -1 : 1);
  });
}
function rowCells(row, low, high) {
  const ours = row.candidate, name = fastestOf(row), ratio = row.ratio.fastest;
  const note = ours.verdict !== "correct" && ours.reason ? el("span", {class: "under"}, ours.reason.length > 110 ? ours.reason.slice(0, 110) + "…" : ours.reason) : el("span", {class: "under hide"}, Object.entries(row.values).filter(([k]) => k !== "note").map(([k, v]) => /[0-9]/.test(v[0]) || v[0] === "=" ? k + " " + v : v).join(", "));
  const others = Object.entries(row.baselines).map(([key, side]) => `${key}: ${side.verdict === "correct" ? timeText(side.time_us) : side.time_us ? "(" + timeText(side.time_us) + ") " + side.verdict : side.verdict}`).join("\n");
  return el("tr", {},
    el("td", {class: "name", title: Object.entries(row.values).map(([k, v]) => k + " " + v).join("\n")}, row.name, note),
    el("td", {class: "hide"}, row.category),
    el("td", {title: ours.reason || null}, verdictChip(ours.verdict)),
    el("td", {class: "num"}, ratio ? ratioText(ratio[0]) : "–"),
    el("td", {class: "bar"}, ratio ? forest(ratio, low, high) : ""),
    el("td", {class: "num"}, timeText(ours.time_us)),
    el("td", {class: "num", title: others}, name === null ? "none" : timeText(row.baselines[name].time_us), name === null ? null : el("span", {class: "under"}, name)),
    el("td", {class: "num hide"}, row.bound_us !== null && ours.time_us ? fixed(100 * row.bound_us / ours.time_us, 2) + " %" : "–"));
}
function scenarioTable(data) {
  const table = view.table === "latest" && data.latest ? data.latest : data.best || data.latest;
  if (!table || !table.rows.length) return null;
  const ratios = table.rows.map(r => r.ratio.fastest).filter(Boolean).flat();
  const low = Math.min(0.8, ...ratios) * 0.95, high = Math.max(1.25, ...ratios) * 1.05;
  const body = el("tbody", {}), count = el("p", {class: "sub"}), head = el("tr", {});
  const fill = () => {
    const rows = orderedRows(table), shown = view.all ? rows : rows.slice(0, 60);
    body.replaceChildren(...shown.map(r => rowCells(r, low, high)));
    count.replaceChildren(`${shown.length} of ${table.rows.length} scenarios`);
    if (shown.length < rows.length) count.append(" ", el("button", {onclick: () => { view.all = true; fill(); }}, "show all"));
    for (const th of head.children) th.setAttribute("aria-sort", th.dataset.key === view.sort ? (view.down ? "descending" : "ascending") : "none");
  };
  for (const c of columns) head.append(el("th", {scope: "col", "data-key": c.key, class: (c.num ? "num " : "") + (c.hide ? "hide" : "")}, el("button", {onclick: () => { view.down = view.sort === c.key ? !view.down : false; view.sort = c.key; fill(); }}, c.label)));
  const pick = (label, key, values, names) => el("select", {"aria-label": label, onchange: e => { view[key] = e.target.value; fill(); }}, el("option", {value: ""}, label), values.map(v => el("option", {value: v, selected: view[key] === v}, names ? names[v] : v)));
  const tools = el("div", {class: "tools"}, el("input", {type: "search", placeholder: "filter, e.g. causal bf16", "aria-label": "Filter scenarios", value: view.text, oninput: e => { view.text = e.target.value; fill(); }}));
  const categories = [...new Set(table.rows.map(r => r.category))], verdicts = [...new Set(table.rows.map(r => r.candidate.verdict))];
  if (categories.length > 1) tools.append(pick("all categories", "category", categories));
  if (verdicts.length > 1) tools.append(pick("all verdicts", "verdict", verdicts));
  if (data.latest && data.best) tools.append(el("select", {"aria-label": "Which evaluation", onchange: e => { view.table = e.target.value; draw(); }}, el("option", {value: "best", selected: view.table === "best"}, "best (evaluation " + data.best.evaluation + ")"), el("option", {value: "latest", selected: view.table === "latest"}, "latest (evaluation " + data.latest.evaluation + ")")));
  fill();
  return section("Scenarios", tools, el("div", {class: "scroll"}, el("table", {}, el("thead", {}, head), body)), count);
}
function categoryTable(data) {
  const table = view.table === "latest" && data.latest ? data.latest : data.best || data.latest;
  if (!table || Object.keys(table.by_category).length < 2) return null;
  const rows = Object.entries(table.by_category).map(([name, s]) => el("tr", {}, el("td", {class: "name"}, name), el("td", {class: "num"}, s.correct + " / " + s.total), el("td", {class: "num"}, ratioText(s.geomean.fastest)), el("td", {class: "num"}, ratioText(s.worst.fastest)), el("td", {class: "num"}, s.parity.fastest === null || s.parity.fastest === undefined ? "–" : s.parity.fastest)));
  const against = table.baselines.filter(b => table.summary.geomean[b] !== undefined).map(b => el("tr", {}, el("td", {class: "name"}, b), el("td", {class: "num"}, ratioText(table.summary.geomean[b])), el("td", {class: "num"}, ratioText(table.summary.worst[b])), el("td", {class: "num"}, table.summary.parity[b] === null || table.summary.parity[b] === undefined ? "–" : table.summary.parity[b])));
  const th = (text, num) => el("th", {scope: "col", class: num ? "num" : ""}, text);
  return section("By category, and against each baseline", el("div", {class: "two"},
    el("div", {}, el("table", {}, el("thead", {}, el("tr", {}, th("Category"), th("right", 1), th("geomean", 1), th("slowest", 1), th("parity", 1))), el("tbody", {}, rows))),
    el("div", {}, el("table", {}, el("thead", {}, el("tr", {}, th("Baseline"), th("geomean", 1), th("slowest", 1), th("parity", 1))), el("tbody", {}, against)), el("p", {class: "sub", style: "margin-top:8px"}, "Over the scenarios on which that baseline is right; a dash where ours is not right on one of them."))));
}
function followed(q) {
  const f = q.followed, then = el("p", {class: "then"});
  if (!f || !f.evaluations) return el("p", {class: "then soft"}, "No evaluation followed.");
  const change = (before, after) => before !== null && after !== null ? `${ratioText(before)} before, ${ratioText(after)} at best (${after >= before ? "+" : "−"}${Math.abs(100 * (after / before - 1)).toFixed(1)} %)` : null;
  const all = change(f.before, f.best), focus = q.focus ? change(f.focus_before, f.focus_best) : null;
  then.append(`In the next ${plural(f.evaluations, "evaluation")}: `);
  if (focus) then.append(el("b", {}, q.focus), " " + focus + (all ? "; " : "."));
  if (all) then.append((focus ? "over all scenarios " : "") + all + ".");
  if (!all && !focus) then.append("no ratio to compare.");
  return then;
}
function ledTo(q) {
  const did = q.led_to, parts = [];
  if (!did) return null;
  if ((did.changes || []).length) parts.push("changed " + did.changes.join(", "));
  for (const [kind, count] of Object.entries(did.tools || {})) parts.push(`${kindNames[kind] || kind} ${count}`);
  if ((did.evaluations || []).length) parts.push(plural(did.evaluations.length, "evaluation") + " (" + did.evaluations.join(", ") + ")");
  return el("p", {class: "then"}, "What the agent did then: " + (parts.length ? parts.join("; ") : "nothing") + ".");
}
function story(data) {
  const entries = [];
  for (const q of data.questions) entries.push([q.seq, el("div", {class: "entry ask"}, el("div", {class: "head"}, chip(q.category.replaceAll("_", " ") || "question"), el("span", {}, `after evaluation ${q.after}`), el("code", {}, q.id), q.questioner ? el("span", {}, "by " + q.questioner + (q.chosen_from ? ", from the " + q.chosen_from : "")) : null, q.acts && q.acts.length ? el("span", {}, q.acts.join(", ")) : null),
    q.facts.length ? el("ul", {}, q.facts.map(f => el("li", {}, f))) : null, el("div", {class: "text"}, questionOnly(q)), q.answered !== undefined ? el("p", {class: "then"}, q.answered ? "Answered" + (q.answer ? ": " + q.answer + "." : ".") : "Not answered: nothing was measured, said or worked on that it asked for.") : null, ledTo(q), followed(q))]);
  for (const j of data.judgements) entries.push([j.seq, el("div", {class: "entry " + (j.decision === "met" ? "met" : "refusal")}, el("div", {class: "head"}, verdictChip(j.decision), el("span", {}, `the judge, after evaluation ${j.after}`)), (j.figures || []).length ? el("ul", {}, [].concat(j.figures).map(f => el("li", {}, typeof f === "string" ? f : JSON.stringify(f)))) : null, j.reason ? el("p", {class: "then"}, j.reason) : null)]);
  for (const c of data.claims) entries.push([c.seq, el("div", {class: "entry"}, el("div", {class: "head"}, chip("claim"), el("span", {}, `the agent, after evaluation ${c.after}`)), el("p", {class: "then"}, c.text || [].concat(c.claims).join(", ")))]);
  for (const m of data.messages) entries.push([m.seq, el("div", {class: "entry human"}, el("div", {class: "head"}, chip("person"), el("span", {}, data.evaluations.length ? `after evaluation ${m.after}` : `event ${m.seq}`)), el("p", {class: "then"}, m.text.length > 400 ? el("details", {}, el("summary", {}, m.text.slice(0, 160) + "…"), el("pre", {}, m.text)) : m.text))]);
  if (!entries.length) return null;
  entries.sort((a, b) => a[0] - b[0]);
  const nodes = entries.map(e => e[1]), title = data.questions.length ? "Questions, claims and decisions, and what followed" : "Messages, claims and decisions";
  return nodes.length > 40 ? section(title, nodes.slice(0, 25), el("details", {}, el("summary", {}, `${nodes.length - 25} more`), nodes.slice(25))) : section(title, nodes);
}
/* The message to an agent holds the facts too; here they stand above it. */
function questionOnly(q) {
  const lines = q.text.split("\n").filter(line => line.trim() && !q.facts.some(f => line.includes(f)));
  const asking = lines.filter(line => line.includes("?"));
  return (asking.length ? asking : lines).join(" ") || q.text;
}
function failureTable(data) {
  if (!data.failures.length) return null;
  const many = data.evaluations.length > 1, th = text => el("th", {scope: "col"}, text);
  const groups = new Map();
  for (const f of data.failures) {
    const key = [f.verdict, f.reason, f.first, f.last, f.count].join("\u0000");
    groups.set(key, (groups.get(key) || []).concat([f]));
  }
  const names = list => list.length === 1 ? list[0].scenario : el("details", {}, el("summary", {}, plural(list.length, "scenario")), list.map(f => f.scenario).join(", "));
  const rows = [...groups.values()].map(list => {
    const f = list[0];
    return el("tr", {}, el("td", {class: "name"}, names(list)), el("td", {}, verdictChip(f.verdict)), many ? el("td", {}, f.count === 1 ? `evaluation ${f.first}` : `${f.count} times, evaluations ${f.first} to ${f.last}`) : null,
      el("td", {style: "min-width:220px;overflow-wrap:anywhere"}, f.reason ? (f.reason.length > 240 ? el("details", {}, el("summary", {}, f.reason.slice(0, 120) + "…"), el("pre", {}, f.reason)) : f.reason) : "–"));
  });
  return section("Verdicts that were not “correct”", el("div", {class: "scroll"}, el("table", {}, el("thead", {}, el("tr", {}, th("Scenario"), th("Verdict"), many ? th("When") : null, th("Why"))), el("tbody", {}, rows))));
}
)js";

}  // namespace ks::report
