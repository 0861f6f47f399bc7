// The page's script, last part: drawing, and on a live page the controls and the stream of changes.
#include "report/write_report.h"

namespace ks::report {

const char* const kPageLive = R"js(
let data = JSON.parse(document.getElementById("data").textContent);
const page = document.getElementById("page"), live = document.body.dataset.live === "yes", token = document.body.dataset.token;
const content = el("div", {});
function draw() {
  const judged = [ratioChart, categoryTable, scenarioTable], work = [toolChart, readChart];
  const parts = data.evaluations.length ? [headline, ...judged, story, failureTable, ...work, provenance] : [headline, ...work, story, provenance];
  const active = document.activeElement, label = active && active.getAttribute("aria-label"), at = active && active.selectionStart;
  content.replaceChildren(...parts.map(part => part(data)).filter(Boolean));
  if (!label) return;
  const again = content.querySelector(`[aria-label="${CSS.escape(label)}"]`);
  if (!again || !content.contains(again) || again.tagName !== active.tagName) return;
  again.focus({preventScroll: true});
  if (again.setSelectionRange && typeof at === "number") again.setSelectionRange(at, at);
}
function liveBox() {
  const state = el("span", {class: "sub", role: "status"}, "connecting"), said = el("p", {class: "sub", role: "status"});
  const list = el("div", {}), text = el("textarea", {"aria-label": "Your question to the agent", placeholder: "Ask the agent something. It is sent when the agent next comes back.", maxlength: 4000});
  const post = (action, body) => fetch(`${action}?token=${encodeURIComponent(token)}`, {method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify(body || {})})
    .then(async answer => { const json = await answer.json().catch(() => ({})); said.textContent = answer.ok ? json.said || "done" : json.error || `refused (${answer.status})`; return answer.ok; })
    .catch(() => { said.textContent = "the server does not answer"; return false; });
  const button = (label, action) => el("button", {type: "button", onclick: () => post(action)}, label);
  const go = button("No question, go on", "continue");
  const form = el("form", {onsubmit: e => { e.preventDefault(); if (text.value.trim()) post("say", {text: text.value}).then(ok => { if (ok) text.value = ""; }); }}, text,
    el("div", {class: "tools", style: "margin:8px 0 12px"}, el("button", {type: "submit"}, "Ask"), go, button("Pause", "pause"), button("Resume", "resume"), el("button", {type: "button", onclick: () => { if (confirm("Stop the run? The judge then has the last word.")) post("stop"); }}, "Stop")));
  const box = el("section", {id: "live", "aria-label": "Live"}, el("div", {class: "head"}, state), form, said, list);
  return {box, state, show: status => {
    const words = [];
    if (status.progress) words.push(status.progress);
    words.push(status.running ? (status.paused ? "paused" : status.waiting ? "waiting for your question" : "running") : "the run is not running");
    state.textContent = words.join(" · ");
    for (const control of form.querySelectorAll("button, textarea")) control.disabled = !status.running;
    go.hidden = !status.waiting;
    list.replaceChildren(...(status.suggestions || []).map(s => el("div", {class: "entry ask"}, el("div", {class: "head"}, chip((s.category || "question").replaceAll("_", " ")), el("code", {}, s.id), el("button", {type: "button", onclick: () => { text.value = s.text; text.focus(); }}, "use")), (s.facts || []).map(f => el("div", {class: "sub"}, f)), el("div", {class: "text"}, s.text))));
  }};
}
page.append(content);
draw();
let width = chartWidth();
window.addEventListener("resize", () => { if (width !== chartWidth()) { width = chartWidth(); draw(); } });
if (live) {
  const box = liveBox();
  page.prepend(box.box);
  let waiting = null;
  const source = new EventSource(`events?token=${encodeURIComponent(token)}`);
  source.addEventListener("page", event => {
    data = JSON.parse(event.data);
    if (waiting === null) waiting = requestAnimationFrame(() => { waiting = null; draw(); });
  });
  source.addEventListener("status", event => box.show(JSON.parse(event.data)));
  source.onerror = () => { box.state.textContent = "connection lost, trying again"; };
}
)js";

}  // namespace ks::report
