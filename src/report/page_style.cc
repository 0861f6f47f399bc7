// The page's style: one column of sections that holds at 390 and at 1440 pixels, light and dark.
#include "report/write_report.h"

namespace ks::report {

const char* const kPageStyle = R"css(
:root{--bg:#f6f7f9;--card:#fff;--ink:#1b1f24;--soft:#59636e;--line:#d5dbe1;--grid:#e6eaee;--accent:#0a5cad;--good:#11703a;
--bad:#b42318;--warn:#8a5300;--goodbg:#e2f4e8;--badbg:#fce8e6;--warnbg:#fdf0d9;--chip:#eef1f5;
--k0:#0a5cad;--k1:#6f42c1;--k2:#c2570c;--k3:#8a6d00;--k4:#b4236f;--k5:#11703a;--k6:#c62f2f;--k7:#00757a;--k8:#5b6b7c;--k9:#a9b4be}
@media (prefers-color-scheme:dark){:root{--bg:#12161b;--card:#1a2027;--ink:#e7ebef;--soft:#a0abb6;--line:#333c46;--grid:#262e37;
--accent:#6cb2ff;--good:#5fd08a;--bad:#ff8a80;--warn:#f0b557;--goodbg:#133322;--badbg:#41201e;--warnbg:#3a2c12;--chip:#27303a;
--k0:#6cb2ff;--k1:#b794f6;--k2:#f59e5b;--k3:#d9bd4a;--k4:#f285b8;--k5:#5fd08a;--k6:#ff8a80;--k7:#4fd0d4;--k8:#93a4b5;--k9:#5c6875}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--ink);font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
main{max-width:1240px;margin:0 auto;padding:20px 16px 60px}
h1{font-size:1.5rem;line-height:1.25;margin:0 0 2px;overflow-wrap:anywhere}
h2{font-size:1.08rem;margin:0 0 10px}
h3{font-size:.95rem;margin:18px 0 6px}
p{margin:0 0 8px}
a{color:var(--accent)}
section{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:16px;margin:14px 0;min-width:0}
.sub{color:var(--soft);margin:0 0 4px;overflow-wrap:anywhere}
.soft{color:var(--soft)}
.figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(138px,1fr));gap:10px;margin-top:14px}
.figure{border-left:3px solid var(--line);padding:2px 0 2px 10px}
.figure b{display:block;font-size:1.45rem;font-weight:650;line-height:1.2;font-variant-numeric:tabular-nums}
.figure.lead b{font-size:1.9rem}
.figure span{color:var(--soft);font-size:.83rem;display:block}
.figure.good{border-color:var(--good)}.figure.bad{border-color:var(--bad)}.figure.warn{border-color:var(--warn)}
.chip{display:inline-block;border-radius:99px;padding:1px 9px;font-size:.8rem;background:var(--chip);white-space:nowrap}
.chip.good{background:var(--goodbg);color:var(--good)}.chip.bad{background:var(--badbg);color:var(--bad)}.chip.warn{background:var(--warnbg);color:var(--warn)}
svg{display:block;width:100%;height:auto;overflow:visible}
svg text{fill:var(--soft);font-size:12px;font-family:inherit}
svg .strong{fill:var(--ink);font-weight:600}
.legend{display:flex;flex-wrap:wrap;gap:4px 16px;margin:8px 0 0;padding:0;list-style:none;font-size:.85rem;color:var(--soft)}
.legend i{display:inline-block;width:11px;height:11px;border-radius:2px;margin-right:6px;vertical-align:-1px}
.tools{display:flex;flex-wrap:wrap;gap:8px;margin:0 0 10px}
input,select,button,textarea{font:inherit;color:inherit;background:var(--bg);border:1px solid var(--line);border-radius:7px;padding:6px 10px;min-width:0}
input[type=search]{flex:1 1 180px}
button{cursor:pointer}button:disabled,textarea:disabled{opacity:.55;cursor:default}button:hover{border-color:var(--accent)}
:focus-visible{outline:2px solid var(--accent);outline-offset:1px}
.scroll{overflow-x:auto;margin:0 -16px;padding:0 16px}
table{border-collapse:collapse;width:100%;font-size:.88rem;font-variant-numeric:tabular-nums}
th,td{text-align:left;padding:6px 10px 6px 0;border-bottom:1px solid var(--grid);vertical-align:middle}
td.num,th.num{text-align:right}
th{color:var(--soft);font-weight:600;white-space:nowrap;border-bottom-color:var(--line)}
th button{all:unset;cursor:pointer;padding:2px 0}th button:focus-visible{outline:2px solid var(--accent)}
th[aria-sort=ascending] button::after{content:" \25B2";font-size:.7em}th[aria-sort=descending] button::after{content:" \25BC";font-size:.7em}
td.name{min-width:150px;max-width:300px;overflow-wrap:anywhere}
td .under{display:block;color:var(--soft);font-size:.8rem}
.bar{width:190px;min-width:150px}
.entry{border-left:3px solid var(--line);padding:2px 0 2px 12px;margin:0 0 16px}
.entry.refusal{border-color:var(--bad)}.entry.met{border-color:var(--good)}.entry.ask{border-color:var(--accent)}.entry.human{border-color:var(--k4)}
.entry .head{color:var(--soft);font-size:.85rem;display:flex;flex-wrap:wrap;gap:4px 10px;align-items:center}
.entry .text{font-weight:600;margin:4px 0;overflow-wrap:anywhere}
.entry ul{margin:4px 0;padding-left:18px;overflow-wrap:anywhere}
.entry .then{font-size:.9rem}
dl{display:grid;grid-template-columns:minmax(110px,220px) 1fr;gap:4px 14px;margin:0;font-size:.9rem}
dt{color:var(--soft);overflow-wrap:anywhere}dd{margin:0;overflow-wrap:anywhere}
code,pre{font-family:ui-monospace,"DejaVu Sans Mono",monospace;font-size:.86em}
pre{white-space:pre-wrap;overflow-wrap:anywhere;background:var(--bg);border-radius:7px;padding:10px;max-height:320px;overflow:auto;margin:8px 0}
details summary{cursor:pointer;color:var(--accent)}

#live textarea{width:100%;min-height:58px;resize:vertical}
.two{display:grid;grid-template-columns:1fr 1fr;gap:20px}.two>div{overflow-x:auto;min-width:0}
@media (max-width:760px){.two{grid-template-columns:1fr}main{padding:12px 8px 40px}section{padding:12px;border-radius:8px}.scroll{margin:0 -12px;padding:0 12px}
.hide{display:none!important}dl{grid-template-columns:1fr}dd{margin-bottom:6px}.bar{width:96px;min-width:88px}td.name{min-width:118px}table{font-size:.82rem}th,td{padding-right:8px}}
@media print{section{break-inside:avoid}#live,.tools{display:none}}
)css";

}  // namespace ks::report
