import { html, raw } from 'hono/html';
import type { RuleResult, Verdict } from './verdict.ts';
import { findingText, removableOf, resultWords, summaryOf, visible } from './words.ts';

const POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";
const STYLE = `
:root { color-scheme: light dark; --fail: light-dark(#b3261e, #ff9b92); --pass: light-dark(#1d6b45, #86d3ab); --soft: light-dark(#5b626b, #a3abb5); }
body { margin: 0 auto; max-width: 60rem; padding: 2rem 1.25rem 4rem; font: 16px/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
section { border-left: 4px solid var(--soft); padding: .2rem 0 .2rem 1rem; margin: 1.5rem 0; }
section.fail { border-color: var(--fail); } section.pass { border-color: var(--pass); }
h2 { font-size: 1.05rem; margin: 0; } .soft, blockquote { color: var(--soft); } blockquote { margin: .4rem 0; } p { margin: .4rem 0; }
`;

/** The verdict as one page without a script. Failures come first. */
export function toVerdictHtml(verdict: Verdict): string {
  const { rules, holds, at } = verdict;
  const results = Object.keys(resultWords);
  const sorted = rules.toSorted((a, b) => results.indexOf(a.result) - results.indexOf(b.result));
  const page = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>berth sandbox verdict: ${holds ? 'pass' : 'fail'}</title>
<style>${raw(STYLE)}</style>
</head>
<body>
<h1>${visible(summaryOf(verdict))}</h1>
<p class="soft">At ${at}, in the time of the sandbox. O: is the contract of the providers, M: the API of the marketplace.</p>
${removableOf(verdict).map((text) => html`<p>${visible(text)}</p>`)}
${sorted.map(section)}
</body>
</html>
`;
  return String(page);
}

function section({ rule, cites, judges, result, findings, not_tested: why }: RuleResult) {
  return html`<section class="${result}" id="${rule}">
<h2>${resultWords[result]} · <code>${rule}</code></h2>
<p>${judges}</p>
<blockquote>“${cites}”</blockquote>
${why === undefined ? '' : html`<p>Not tested: ${why}.</p>`}
${findings.length === 0 ? '' : html`<ul>${findings.map(item)}</ul>`}
</section>`;
}

function item({ accepted, ...finding }: RuleResult['findings'][number]) {
  const text = visible(findingText(finding));
  return html`<li>${text}${accepted === undefined ? '' : html`<br><span class="soft">Accepted: ${visible(accepted)}</span>`}</li>`;
}
