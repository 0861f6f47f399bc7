// The page's script, first part: elements, words for numbers, the headline, provenance. All text of a run goes through
// textContent; nothing that an agent wrote is ever parsed as HTML.
#include "report/write_report.h"

namespace ks::report {

const char* const kPageScript = R"js(
const SVG = "http://www.w3.org/2000/svg";
function el(name, attributes, ...children) {
  const svg = ["svg", "g", "line", "path", "rect", "circle", "text", "title", "polyline"].includes(name) && name !== "title" || name === "svgtitle";
  const node = svg ? document.createElementNS(SVG, name === "svgtitle" ? "title" : name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : value);
  }
  for (const child of children.flat()) if (child !== null && child !== undefined) node.append(child);
  return node;
}
const fixed = (value, digits) => value === null || value === undefined || !isFinite(value) ? "–" : value.toPrecision(digits);
function ratioText(value) {
  if (value === null || value === undefined) return "–";
  return (value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value >= 0.1 ? value.toFixed(2) : value.toPrecision(2)) + "x";
}
function timeText(us) {
  if (us === null || us === undefined) return "–";
  if (us >= 1e6) return fixed(us / 1e6, 3) + " s";
  if (us >= 1e3) return fixed(us / 1e3, 3) + " ms";
  return fixed(us, 3) + " µs";
}
function spanText(seconds) {
  if (!(seconds > 0)) return "–";
  if (seconds < 90) return seconds.toFixed(0) + " s";
  if (seconds < 5400) return (seconds / 60).toFixed(1) + " min";
  if (seconds < 172800) return (seconds / 3600).toFixed(1) + " h";
  return (seconds / 86400).toFixed(1) + " days";
}
const dateText = seconds => seconds > 0 ? new Date(seconds * 1000).toISOString().replace("T", " ").slice(0, 19) + " UTC" : "–";
const chip = (text, tone) => el("span", {class: "chip " + (tone || "")}, text);
const tones = {correct: "good", met: "good", judged: "good", unsupported: "warn", not_run: "warn", undecided: "warn", suspect: "bad"};
const verdictChip = verdict => chip(String(verdict).replace("_", " "), tones[verdict] || "bad");
const section = (title, ...children) => el("section", {"aria-label": title}, el("h2", {}, title), ...children);
const figure = (value, label, tone) => el("div", {class: "figure " + (tone || "")}, el("b", {}, value), el("span", {}, label));
const plural = (count, word) => count + " " + word + (count === 1 ? "" : "s");

function headline(data) {
  const head = data.headline, run = data.run || {}, best = head.best, table = data.best || data.latest;
  const goal = run.goal || "";
  const box = el("section", {"aria-label": "Result"}, el("h1", {}, data.title));
  const about = [];
  if (run.operator || table) about.push(run.operator || table.operator);
  if (table) about.push("grid " + table.grid, "device " + table.device);
  if (run.agent) about.push("agent " + run.agent);
  if (run.questioner) about.push("questioner " + run.questioner);
  box.append(el("p", {class: "sub"}, about.join(" · ")));
  if (goal) box.append(el("p", {class: "sub"}, "Goal: ", el("code", {}, goal)));
  const decision = data.end && data.end.decision;
  const figures = el("div", {class: "figures"});
  if (decision) figures.append(figure(decision.replace("_", " "), "the judge's decision" + (data.end.reason ? ": " + data.end.reason : ""), tones[decision] || "bad"));
  if (best) {
    const interval = best.low !== null && best.high !== null ? " (" + fixed(best.low, 3) + " to " + fixed(best.high, 3) + ")" : "";
    figures.append(figure(ratioText(best.geomean), "geometric mean against the fastest right baseline" + interval, "lead " + (best.geomean >= 1 ? "good" : "warn")));
    if (head.first && head.first.number !== head.best_number) figures.append(figure(ratioText(head.first.geomean), "where it started (evaluation " + head.first.number + ")"));
    figures.append(figure(best.correct + " / " + best.total, "scenarios right", best.correct === best.total ? "good" : "bad"));
    if (best.worst !== null) figures.append(figure(ratioText(best.worst), "slowest scenario"));
    if (best.parity !== null) figures.append(figure(best.parity + " / " + best.total, "at parity or above"));
  }
  const idle = table ? table.rows.filter(r => r.candidate.verdict === "not_run").length : 0;
  if (idle) figures.append(figure(idle, plural(idle, "scenario").replace(idle + " ", "") + " not run", "warn"));
  if (head.evaluations > 1) figures.append(figure(head.evaluations, "evaluations" + (head.last_time > head.first_time ? " in " + spanText(head.last_time - head.first_time) : "") + "; the best is number " + head.best_number));
  const refused = (head.model_choices || {}).model_refused;
  if (refused) figures.append(figure(refused, "answers of the questioner's model refused: not an offered id", "warn"));
  if (head.questions) figures.append(figure(head.questions, "questions asked; " + plural(head.refusals, "refusal")));
  if (data.trace && data.trace.tool_calls) figures.append(figure(data.trace.tool_calls.toLocaleString("en"), "tool calls in " + plural(data.trace.sessions, "session")));
  if (head.evaluations <= 1 && head.last_time > head.first_time) figures.append(figure(spanText(head.last_time - head.first_time), "from first to last event"));
  box.append(figures);
  const aa = table && table.summary.aa;
  if (aa && aa.p95 !== null) box.append(el("p", {class: "sub", style: "margin-top:12px"}, "Noise: the same binary against itself differs by " + (100 * Math.expm1(aa.median)).toFixed(1) + " % at the median and " + (100 * Math.expm1(aa.p95)).toFixed(1) + " % for 95 % of the scenarios. A smaller difference means nothing."));
  return box;
}

function asList(value, list, prefix) {
  if (value !== null && typeof value === "object" && !Array.isArray(value)) {
    for (const [key, inner] of Object.entries(value)) asList(inner, list, prefix ? prefix + ", " + key : key);
    return;
  }
  const text = Array.isArray(value) ? value.map(v => typeof v === "object" ? JSON.stringify(v) : String(v)).join(", ") : String(value);
  list.append(el("dt", {}, prefix.replaceAll("_", " ")), el("dd", {}, text === "" ? "–" : text.length > 400 ? el("details", {}, el("summary", {}, text.slice(0, 80) + "…"), el("pre", {}, text)) : text));
}
function provenance(data) {
  const table = data.latest || data.best;
  if (!table && !data.run.task) return null;
  const list = el("dl", {});
  if (table) {
    const facts = {candidate: table.candidate, "source hash": table.hash, grid: table.grid, started: dateText(table.started), took: spanText(table.wall_s), timing: table.timing};
    asList(facts, list, "");
    asList(data.provenance || {}, list, "");
    if (data.build) asList({compiler: data.build.compiler || "–", "build cached": data.build.cached}, list, "");
    asList(Object.fromEntries(Object.entries(table.stage_s || {}).map(([k, v]) => [k, v.toFixed(2) + " s"])), list, "stage");
  }
  for (const key of ["task", "seed", "budget", "model"]) if (data.run[key] !== undefined) asList(data.run[key], list, key);
  const counters = data.trace && Object.entries(data.trace.counters || {}).filter(([, n]) => n > 0);
  if (counters && counters.length) asList(Object.fromEntries(counters), list, "unreadable in the trace");
  const box = section("Provenance", list);
  if (data.build && data.build.log) box.append(el("details", {}, el("summary", {}, "Build log"), el("pre", {}, data.build.log)));
  return box;
}
)js";

}  // namespace ks::report
