// The page's script, second part: the ratio over the evaluations, and the time line of an agent's work.
#include "report/write_report.h"

namespace ks::report {

const char* const kPageCharts = R"js(
const narrow = () => window.innerWidth < 760;
const chartWidth = () => narrow() ? Math.max(300, window.innerWidth - 44) : 1180;
function niceTicks(low, high) {
  const ticks = [], steps = [0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.5, 2, 3, 5, 7, 10, 20, 50, 100];
  let last = -Infinity;
  for (const step of steps) {
    if (step < low || step > high) continue;
    const at = Math.log(step);
    if (at - last < (Math.log(high) - Math.log(low)) / 7 && step !== 1) continue;
    ticks.push(step);
    last = at;
  }
  return ticks;
}
function withTitle(node, text) { node.append(el("svgtitle", {}, text)); return node; }

function ratioChart(data) {
  const points = data.evaluations.filter(p => !p.partial);
  const known = points.filter(p => p.geomean !== null);
  if (known.length < 2) return null;
  const W = chartWidth(), H = narrow() ? 300 : 380, left = 58, right = 16, top = 14, bottom = 74;
  const target = /geomean\s*>=?\s*([0-9.]+)/.exec(data.run.goal || "");
  const goal = target ? Number(target[1]) : null;
  const values = known.flatMap(p => [p.low, p.high, p.geomean]).filter(v => v > 0).concat(goal ? [goal] : []);
  const low = Math.min(...values) * 0.94, high = Math.max(...values) * 1.06;
  const first = data.evaluations[0].number, last = Math.max(data.evaluations[data.evaluations.length - 1].number, first + 1);
  const x = n => left + (n - first) / (last - first) * (W - left - right);
  const y = v => top + (Math.log(high) - Math.log(v)) / (Math.log(high) - Math.log(low)) * (H - top - bottom);
  const svg = el("svg", {viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": "Geometric mean of the ratios over the evaluations"});
  for (const tick of niceTicks(low, high)) {
    svg.append(el("line", {x1: left, x2: W - right, y1: y(tick), y2: y(tick), stroke: tick === 1 ? "var(--soft)" : "var(--grid)", "stroke-width": 1}),
      el("text", {x: left - 8, y: y(tick) + 4, "text-anchor": "end"}, tick + "x"));
  }
  if (goal) svg.append(withTitle(el("line", {x1: left, x2: W - right, y1: y(goal), y2: y(goal), stroke: "var(--good)", "stroke-width": 1.5, "stroke-dasharray": "7 5"}), "the goal: " + goal + "x"),
    el("text", {x: W - right, y: y(goal) - 6, "text-anchor": "end", style: "fill:var(--good)"}, "goal"));
  let step = Math.max(1, Math.ceil((last - first) / (narrow() ? 6 : 14)));
  for (let n = Math.ceil(first / step) * step; n <= last; n += step) svg.append(el("text", {x: x(n), y: H - bottom + 18, "text-anchor": "middle"}, n));
  svg.append(el("text", {x: (left + W - right) / 2, y: H - bottom + 36, "text-anchor": "middle"}, "evaluation"));
  let path = "", before = null;
  for (const p of data.evaluations) {
    if (p.best === null) continue;
    path += before === null ? `M${x(p.number)},${y(p.best)}` : `H${x(p.number)}V${y(p.best)}`;
    before = p.best;
  }
  svg.append(el("path", {d: path, fill: "none", stroke: "var(--accent)", "stroke-width": 2.5}));
  for (const p of known) {
    const label = `evaluation ${p.number}: ${ratioText(p.geomean)}` + (p.low !== null ? ` (${fixed(p.low, 3)} to ${fixed(p.high, 3)})` : "") + `, ${p.correct} of ${p.total} right` + (p.summary ? "; " + p.summary : "");
    const g = withTitle(el("g", {}), label);
    if (p.low > 0 && p.high > 0) g.append(el("line", {x1: x(p.number), x2: x(p.number), y1: y(p.low), y2: y(p.high), stroke: "var(--soft)", "stroke-width": 1.2}));
    g.append(el("circle", {cx: x(p.number), cy: y(p.geomean), r: known.length > 120 ? 2.5 : 4, fill: p.geomean === p.best ? "var(--accent)" : "var(--card)", stroke: "var(--accent)", "stroke-width": 1.6}));
    svg.append(g);
  }
  for (const p of points.filter(p => p.geomean === null)) svg.append(withTitle(el("path", {d: `M${x(p.number) - 4},${H - bottom - 10}l8,8m0,-8l-8,8`, stroke: "var(--bad)", "stroke-width": 2}), `evaluation ${p.number}: ${p.outcome === "judged" ? p.correct + " of " + p.total + " right, no geometric mean" : p.outcome}`));
  const strip = H - 14, where = after => x(Math.min(last, Math.max(first, after)));
  svg.append(el("text", {x: left - 8, y: strip + 4, "text-anchor": "end"}, narrow() ? "" : "asked"));
  for (const q of data.questions) svg.append(withTitle(el("g", {}, el("line", {x1: where(q.after), x2: where(q.after), y1: top, y2: strip - 8, stroke: "var(--k1)", "stroke-width": 1, "stroke-dasharray": "2 4"}), el("circle", {cx: where(q.after), cy: strip, r: 8, fill: "var(--k1)"}), el("text", {x: where(q.after), y: strip + 4.5, "text-anchor": "middle", style: "fill:var(--card);font-weight:700;font-size:12px"}, "?")), `after evaluation ${q.after}: [${q.id}] ${q.text}`));
  for (const j of data.judgements.filter(j => j.decision !== "met")) svg.append(withTitle(el("path", {d: `M${where(j.after) + 12},${strip - 5}l10,10m0,-10l-10,10`, stroke: "var(--bad)", "stroke-width": 2.5}), `the judge refused after evaluation ${j.after}: ${(j.figures || []).join("; ") || j.reason}`));
  const legend = el("ul", {class: "legend"}, el("li", {}, el("i", {style: "background:var(--accent)"}), "best so far, and each evaluation with its interval"));
  if (data.questions.length) legend.append(el("li", {}, el("i", {style: "background:var(--k1);border-radius:50%"}), "question"));
  if (data.headline.refusals) legend.append(el("li", {}, el("b", {style: "color:var(--bad);margin-right:5px"}, "×"), "refusal by the judge"));
  if (points.some(p => p.geomean === null)) legend.append(el("li", {}, el("b", {style: "color:var(--bad);margin-right:5px"}, "×"), "no geometric mean: something was wrong"));
  return section("Ratio over the evaluations", svg, legend, plateau(data, known));
}

function plateau(data, known) {
  const best = data.headline.best_number, since = known.filter(p => p.number > best).length;
  if (since < 3) return null;
  return el("p", {class: "sub", style: "margin-top:8px"}, `Plateau: the best version came with evaluation ${best}; ${since} evaluations since have not beaten it.`);
}

const kindNames = {profiler: "profiler", disassembly: "disassembly", benchmark: "benchmark", build: "build", helper: "helper", edit: "edit", own_source_read: "own source read", documentation: "documentation", other_read: "other reading", other: "other"};
const axisText = (part, value) => part.timed ? spanText(value - part.from).replace("–", "0") : Math.round(value) + "";
function xAxis(svg, part, W, H, left, right, bottom) {
  const count = narrow() ? 2 : 6;
  for (let i = 0; i <= count; ++i) svg.append(el("text", {x: left + i / count * (W - left - right), y: H - bottom + 18, "text-anchor": i === 0 ? "start" : i === count ? "end" : "middle"}, axisText(part, part.from + i / count * (part.to - part.from))));
  svg.append(el("text", {x: left + (W - left - right) / 2, y: H - 2, "text-anchor": "middle"}, part.timed ? "time since the first event" : "event"));
}
function marks(svg, data, part, x, top, foot) {
  const at = mark => part.timed ? mark.time : mark.seq;
  for (const mark of data.questions.concat(data.messages)) svg.append(withTitle(el("line", {x1: x(at(mark)), x2: x(at(mark)), y1: top, y2: foot, stroke: mark.id ? "var(--k1)" : "var(--k4)", "stroke-width": 1.4, "stroke-dasharray": "3 3"}), mark.text.slice(0, 300)));
}
function toolChart(data) {
  const part = data.trace && data.trace.tools;
  if (!part) return null;
  const W = chartWidth(), H = narrow() ? 220 : 300, left = 46, right = 12, top = 10, bottom = 44;
  const most = Math.max(...part.bins.map(bin => bin.reduce((a, b) => a + b, 0)), 1);
  const x = v => left + (v - part.from) / (part.to - part.from) * (W - left - right), width = (W - left - right) / part.bins.length;
  const y = n => top + (1 - n / most) * (H - top - bottom);
  const svg = el("svg", {viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": "Tool calls by kind over time"});
  for (const n of new Set([0, Math.round(most / 2), most])) svg.append(el("line", {x1: left, x2: W - right, y1: y(n), y2: y(n), stroke: "var(--grid)"}), el("text", {x: left - 8, y: y(n) + 4, "text-anchor": "end"}, n));
  part.bins.forEach((bin, i) => {
    let from = 0;
    const total = bin.reduce((a, b) => a + b, 0);
    if (!total) return;
    const g = withTitle(el("g", {}), bin.map((n, k) => n ? `${kindNames[part.kinds[k]] || part.kinds[k]} ${n}` : "").filter(Boolean).join(", "));
    bin.forEach((n, k) => { if (n) g.append(el("rect", {x: left + i * width + 0.5, width: Math.max(1, width - 1), y: y(from + n), height: y(from) - y(from + n), fill: `var(--k${k})`})); from += n; });
    svg.append(g);
  });
  marks(svg, data, part, x, top, H - bottom);
  xAxis(svg, part, W, H, left, right, bottom);
  const legend = el("ul", {class: "legend"}, Object.entries(data.trace.by_kind).map(([kind, count]) => el("li", {}, el("i", {style: `background:var(--k${part.kinds.indexOf(kind)})`}), `${kindNames[kind] || kind} ${count.toLocaleString("en")}`)));
  if (data.questions.length) legend.append(el("li", {}, el("i", {style: "background:var(--k1)"}), "question"));
  if (data.messages.length) legend.append(el("li", {}, el("i", {style: "background:var(--k4)"}), "message of a person"));
  return section("Tools by kind over time", svg, legend);
}
function readChart(data) {
  const part = data.trace && data.trace.reads;
  if (!part) return null;
  const W = chartWidth(), H = narrow() ? 180 : 220, left = 46, right = 12, top = 10, bottom = 44;
  const x = v => left + (v - part.from) / (part.to - part.from) * (W - left - right), y = v => top + (1 - v) * (H - top - bottom);
  const svg = el("svg", {viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": "Share of own source in what tools show"});
  for (const share of [0, 0.5, 1]) svg.append(el("line", {x1: left, x2: W - right, y1: y(share), y2: y(share), stroke: "var(--grid)"}), el("text", {x: left - 8, y: y(share) + 4, "text-anchor": "end"}, 100 * share + " %"));
  const line = part.points.map(([at, share], i) => (i ? "L" : "M") + x(at).toFixed(1) + "," + y(share).toFixed(1)).join("");
  svg.append(el("path", {d: line, fill: "none", stroke: "var(--k6)", "stroke-width": 2}));
  marks(svg, data, part, x, top, H - bottom);
  xAxis(svg, part, W, H, left, right, bottom);
  const all = data.trace.result_chars > 0 ? 100 * data.trace.own_chars / data.trace.result_chars : 0;
  return section("Own source read again", svg, el("p", {class: "sub", style: "margin-top:8px"}, `Share of the last 50 tool results' text that is source the agent had seen or written before. Over the whole trace: ${all.toFixed(1)} % of ${data.trace.result_chars.toLocaleString("en")} characters.`));
}
)js";

}  // namespace ks::report
