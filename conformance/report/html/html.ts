import type { Report } from '../report.ts';
import { whatItProves } from '../words.ts';
import { sections } from './check.ts';
import { html, Markup } from './markup.ts';
import { receipt, settings } from './receipt.ts';
import { STYLE } from './style.ts';
import { alarm, features, gaps, outcomeCard, sentence, tierCards } from './summary.ts';

/** The Content-Security-Policy of a page that has no scripts. */
export const POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/** The report as one self-contained page: no script, no font, no image, no request. */
export function toHtml(report: Report): string {
  const { outcome, base_url, suite_version, requirements_digest } = report;
  const body = html`${gaps(report)}
<h2 id="tiers">The tiers of the contract</h2>
${tierCards(report)}
${features(report)}
${sections(report)}
${receipt(report)}
${settings(report)}`;
  const page = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>${outcome}: ${base_url}</title>
<style>`;
  const rest = html`</style>
</head>
<body>
<main>
<p class="eyebrow">Berth conformance report · Provider Orchestrator API Contract</p>
${outcomeCard(report)}
${alarm(report)}
${contents(body)}
${body}
<footer>Made by berth conformance ${suite_version} from requirements ${requirements_digest.slice(0, 12)}.
The key and all other secrets of the run have been taken out.${
    report.signature === undefined ? '' : ` What its signature proves: ${sentence(whatItProves(report))}`
  }</footer>
</main>
</body>
</html>
`;
  return `${page.text}${STYLE}${rest.text}`;
}

/** Links to all headings, so that none leads nowhere. */
function contents({ text }: Markup): Markup {
  const headings = text.matchAll(/<h2 id="([^"]*)">(.*?)<\/h2>/gs);
  return html`<nav class="contents" aria-label="Contents"><ul>${[...headings].map(
    ([, id = '', title = '']) => html`<li><a href="#${id}">${new Markup(title)}</a></li>`,
  )}</ul></nav>`;
}
