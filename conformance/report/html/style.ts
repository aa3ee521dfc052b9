/** The style of the page. It uses installed fonts and loads nothing. */
export const STYLE = `
:root {
  color-scheme: light dark;
  --page: #f6f5f2; --card: #ffffff; --sunk: #f1efeb; --line: #dedad3; --ink: #1f2328; --soft: #5b626b;
  --link: #1f5fa8;
  --fail: #b3261e; --fail-soft: #fbeae8; --warn: #8a5a00; --warn-soft: #fbf1dc;
  --todo: #5b4ba8; --todo-soft: #eeebfa; --pass: #1d6b45; --pass-soft: #e5f3eb; --none: #5b626b; --none-soft: #eceae6;
}
@media screen and (prefers-color-scheme: dark) {
  :root {
    --page: #15171a; --card: #1d2024; --sunk: #16181b; --line: #33383f; --ink: #e6e8ea; --soft: #a3abb5;
    --link: #8ab8f0;
    --fail: #ff9b92; --fail-soft: #3a1f1d; --warn: #eac06c; --warn-soft: #362b16;
    --todo: #b9adf5; --todo-soft: #2a2642; --pass: #86d3ab; --pass-soft: #182f24; --none: #a3abb5; --none-soft: #292d32;
  }
}
* { box-sizing: border-box; }
html { scroll-behavior: smooth; scroll-padding-top: 1rem; -webkit-text-size-adjust: 100%; }
body {
  margin: 0; background: var(--page); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", "Liberation Sans", Helvetica, Arial, sans-serif;
  overflow-wrap: anywhere;
}
main { max-width: 62rem; margin: 0 auto; padding: 2.5rem 1.25rem 5rem; }
h1, h2, h3, p, ul, dl, dd, figure { margin: 0; }
h1 { font-size: clamp(2rem, 7vw, 3rem); line-height: 1.1; letter-spacing: -.02em; font-weight: 680; overflow-wrap: normal; }
h2 { font-size: 1.3rem; letter-spacing: -.01em; margin: 3rem 0 1rem; }
h3 { font-size: 1rem; }
a { color: var(--link); text-underline-offset: .15em; }
a:focus-visible, summary:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; border-radius: 4px; }
code, pre, .mono { font-family: ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: .8125rem; }
.soft { color: var(--soft); }
.eyebrow { color: var(--soft); font-size: .875rem; margin-bottom: .75rem; }
.fail { --tone: var(--fail); --tone-soft: var(--fail-soft); }
.warn { --tone: var(--warn); --tone-soft: var(--warn-soft); }
.not_tested { --tone: var(--todo); --tone-soft: var(--todo-soft); }
.pass { --tone: var(--pass); --tone-soft: var(--pass-soft); }
.not_asked, .not_applicable, .not_selected, .excluded { --tone: var(--none); --tone-soft: var(--none-soft); }
.outcome { border-top: 6px solid var(--tone); background: var(--card); border-radius: 4px 4px 12px 12px; padding: 1.75rem 1.75rem 1.5rem; box-shadow: 0 1px 2px rgb(0 0 0 / .06); }
.outcome h1 { color: var(--tone); }
.outcome .why { font-size: 1.2rem; line-height: 1.45; margin-top: .6rem; }
.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(7.4rem, 1fr)); gap: 1rem 1.25rem; margin-top: 1.5rem; padding-top: 1.25rem; border-top: 1px solid var(--line); }
.facts .wide { grid-column: 1 / -1; }
dt { color: var(--soft); font-size: .8125rem; }
.alarm { margin-top: 1.25rem; border: 2px solid var(--fail); border-radius: 12px; background: var(--fail-soft); padding: 1.25rem 1.5rem; }
.alarm h2 { margin: 0 0 .5rem; color: var(--fail); }
.alarm ul { margin-top: .8rem; }
.alarm pre { margin-top: .3rem; }
.alarm li + li { margin-top: 1rem; }
.tiers { display: grid; grid-template-columns: repeat(auto-fit, minmax(15rem, 1fr)); gap: 1rem; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 12px; padding: 1.1rem 1.25rem; }
.tiers .state { font-size: 1.1rem; font-weight: 620; color: var(--tone); }
.bar { display: flex; gap: 2px; height: 8px; margin: .8rem 0 .6rem; border-radius: 4px; overflow: hidden; background: var(--none-soft); }
.bar i { background: var(--tone); min-width: 3px; }
.bar i.none { opacity: .35; }
.tally { font-size: .875rem; color: var(--soft); }
.contents ul { margin-top: 1.5rem; list-style: none; padding: 0; display: flex; flex-wrap: wrap; gap: .3rem 1.2rem; }
.fold > summary h2 { display: inline-block; cursor: pointer; }
.gaps { list-style: none; padding: 0; display: grid; gap: .6rem; }
.gaps li { display: grid; grid-template-columns: auto 1fr; gap: .8rem; align-items: baseline; background: var(--card); border: 1px solid var(--line); border-radius: 12px; padding: .8rem 1.1rem; }
.badge { display: inline-block; color: var(--tone); background: var(--tone-soft); border-radius: 999px; padding: .1rem .65rem; font-size: .8125rem; font-weight: 600; white-space: nowrap; }
.check { background: var(--card); border: 1px solid var(--line); border-left: 4px solid var(--tone); border-radius: 8px; margin-bottom: .6rem; }
.check > summary { display: grid; grid-template-columns: 1fr auto; gap: .15rem 1rem; padding: .75rem 1.1rem; cursor: pointer; list-style: none; align-items: baseline; }
.check > summary::-webkit-details-marker { display: none; }
.check > summary .mono { color: var(--soft); grid-column: 1; }
.check > summary .badge { grid-column: 2; grid-row: 1; }
.check > summary .means { grid-column: 1 / -1; font-weight: 560; }
.check > summary .why { grid-column: 1 / -1; }
.check.pass > summary .means, .check.not_selected > summary .means, .check.excluded > summary .means { font-weight: 450; }
.check > summary:hover .means { text-decoration: underline; text-decoration-color: var(--line); }
.check[open] > summary { border-bottom: 1px solid var(--line); }
.check .body { scroll-margin-top: 7rem; padding: 1rem 1.1rem 1.2rem; display: grid; gap: 1.1rem; grid-template-columns: minmax(0, 1fr); }
blockquote { margin: 0; padding-left: .9rem; border-left: 3px solid var(--line); color: var(--soft); }
.label { display: block; color: var(--soft); font-size: .8125rem; margin-bottom: .2rem; }
.versus { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(18rem, 100%), 1fr)); gap: .75rem; }
.versus > div { background: var(--sunk); border-radius: 8px; padding: .7rem .9rem; border-top: 3px solid var(--tone); }
.versus p { white-space: pre-wrap; }
.also { padding-left: 1.1rem; }
.also li + li { margin-top: .3rem; }
.cause { background: var(--tone-soft); border-radius: 8px; padding: .8rem 1rem; }
pre { margin: 0; background: var(--sunk); border: 1px solid var(--line); border-radius: 8px; padding: .75rem .9rem; white-space: pre-wrap; overflow-wrap: anywhere; line-height: 1.5; max-height: 28rem; overflow-y: auto; }
.exchange { border: 1px solid var(--line); border-radius: 8px; }
.exchange > summary { padding: .6rem .9rem; cursor: pointer; }
.exchange > div { padding: .2rem .9rem .9rem; display: grid; gap: .8rem; grid-template-columns: minmax(0, 1fr); }
.scroll { overflow-x: auto; }
.scroll code { white-space: nowrap; }
td.state { white-space: nowrap; }
table { border-collapse: collapse; width: 100%; font-size: .875rem; }
caption { text-align: left; color: var(--soft); font-size: .8125rem; padding-bottom: .3rem; }
th { text-align: left; font-weight: 600; color: var(--soft); font-size: .8125rem; }
th, td { padding: .35rem .8rem .35rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
td.num, th.num { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
tr.here td { background: var(--fail-soft); }
tr.here td:first-child { box-shadow: inset 3px 0 var(--fail); }
td:first-child, th:first-child { padding-left: .6rem; }
.nowrap { white-space: nowrap; }
footer { margin-top: 4rem; padding-top: 1rem; border-top: 1px solid var(--line); color: var(--soft); font-size: .8125rem; }
@media (max-width: 34rem) {
  main { padding: 1rem .8rem 3rem; }
  .outcome { padding: 1.25rem 1.1rem; }
  .facts { grid-template-columns: 1fr 1fr; }
  .gaps li { grid-template-columns: 1fr; gap: .3rem; }
  .check > summary { grid-template-columns: 1fr; }
  .check > summary .badge { grid-column: 1; grid-row: auto; justify-self: start; }
}
@media print {
  @page { margin: 15mm; }
  :root { color-scheme: light; --page: #fff; --card: #fff; }
  body { font-size: 10.5pt; }
  main { max-width: none; padding: 0; }
  .check, .gaps li, .card, .outcome, tr { break-inside: avoid; }
  .check.fail { break-inside: auto; }
  h2 { break-after: avoid; }
  pre { max-height: none; }
  .outcome { box-shadow: none; border: 1px solid var(--line); border-top: 6px solid var(--tone); }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
@media (prefers-reduced-motion: reduce) { html { scroll-behavior: auto; } }
`;
