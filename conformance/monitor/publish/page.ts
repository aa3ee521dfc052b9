import { POLICY } from '../../report/html/html.ts';
import { html, type Markup } from '../../report/html/markup.ts';
import { STYLE } from '../../report/html/style.ts';
import { formatUsd } from '../../resources/budget.ts';
import type { Verdict } from '../../verdict/judge.ts';
import { type Certificate, certificateDigest, type Share, type Status } from '../certificate/certificate.ts';

const TONES: Readonly<Record<Status, Verdict>> = {
  certified: 'pass',
  revoked: 'fail',
  'not enough': 'not_tested',
};

/** One page of all providers. */
export function toIndex(certificates: readonly Certificate[]): string {
  return pageOf(
    'What the monitor says',
    html`<h1>What the monitor says</h1>
<div class="scroll"><table>
<thead><tr><th>Provider</th><th>Status</th><th>Why</th><th class="num">Reached</th><th class="num">Answered</th><th class="num">p95</th><th>Certificate</th></tr></thead>
<tbody>${certificates.map(row)}</tbody>
</table></div>`,
  );
}

function row({ provider, status, because, reached, answered, latency_ms }: Certificate): Markup {
  return html`<tr class="${TONES[status]}">
<td><a href="providers/${provider}.html">${provider}</a></td>
<td><span class="badge">${status}</span></td>
<td>${because.join('; ')}</td>
<td class="num">${percent(reached)}</td><td class="num">${percent(answered)}</td>
<td class="num">${latency_ms === null ? '–' : `${Math.round(latency_ms.p95)} ms`}</td>
<td><a href="providers/${provider}.json">JSON</a> · <a href="providers/${provider}.svg">badge</a></td>
</tr>`;
}

/** The certificate of one provider as a page. */
export function toPage(certificate: Certificate): string {
  const { provider, status, because, base_url, window, probes, spend } = certificate;
  const { checks, faults, more_faults, issued_at, suite_version } = certificate;
  return pageOf(
    `${provider}: ${status}`,
    html`<section class="outcome ${TONES[status]}">
<h1>${status}</h1>
<p class="why">${because.length === 0 ? 'No rule revokes it.' : because.join('; ')}</p>
<dl class="facts">
<div class="wide"><dt>Provider</dt><dd>${provider}, ${base_url}</dd></div>
${fact('Window', `${window.from} to ${window.to}`)}${fact('Probes', `${probes.reads} reads, ${probes.machines} machines`)}
${fact('Cut short', String(probes.cut_short))}${fact('Spent', formatUsd(spend.usd))}${fact('Issued', issued_at)}
</dl>
</section>
<h2>Over the window</h2>
<div class="scroll"><table><tbody>
${shared('Logins to ONLINE machines that succeeded', certificate.reached)}
${shared('Reads that were answered', certificate.answered)}
${shared('Creates of listed offers that were not refused for capacity', certificate.stocked)}
${shared('Instances that cost no more than their offer', certificate.priced)}
${shared('Machines without remnants of an earlier one', certificate.clean, certificate.clean.not_tested)}
${latency(certificate)}
</tbody></table></div>
<h2>Faults</h2>
${faults.length === 0 ? html`<p class="soft">None in the window.</p>` : html`<ul class="gaps">${faults.map(fault)}</ul>`}
${more_faults > 0 ? html`<p class="soft">And ${more_faults} more.</p>` : ''}
<h2>Checks</h2>
<div class="scroll"><table>
<thead><tr><th>Check</th><th>Means</th><th class="num">Passed</th><th class="num">Warned</th><th class="num">Failed</th></tr></thead>
<tbody>${checks.map(
      ({ id, means, pass, warn, fail }) => html`<tr>
<td class="mono nowrap">${id}</td><td>${means}</td><td class="num">${pass}</td><td class="num">${warn}</td><td class="num">${fail}</td></tr>`,
    )}</tbody></table></div>
<footer>Made by berth conformance monitor ${suite_version}. Digest ${certificateDigest(certificate)}.</footer>`,
  );
}

function fact(name: string, value: string): Markup {
  return html`<div><dt>${name}</dt><dd>${value}</dd></div>`;
}

function shared(what: string, share: Share, notTested?: string): Markup {
  const value = notTested === undefined ? percent(share) : `not tested: ${notTested}`;
  return html`<tr><td>${what}</td><td class="num">${value}</td><td class="num">${share.good} of ${share.of}</td></tr>`;
}

function latency({ latency_ms: ms }: Certificate): Markup {
  if (ms === null) return html``;
  const [p50, p95, p99] = [ms.p50, ms.p95, ms.p99].map(Math.round);
  return html`<tr><td>Reads: p50, p95, p99</td><td class="num">${p50} · ${p95} · ${p99} ms</td><td class="num">${ms.reads} reads</td></tr>`;
}

function fault({
  check,
  verdict,
  day,
  expected,
  actual,
  request,
  transcript_sha256,
}: Certificate['faults'][number]): Markup {
  return html`<li class="${verdict}"><span class="badge">${verdict}</span>
<div><span class="mono">${check}</span>, ${day}: ${actual}<br><span class="soft">Expected: ${expected}</span>
${request === undefined ? '' : html`<br><code>${request}</code>`}
${transcript_sha256 === undefined ? '' : html`<br><span class="soft mono">transcript ${transcript_sha256}</span>`}</div></li>`;
}

function percent({ share }: Share): string {
  return share === null ? '–' : `${(share * 100).toFixed(1)} %`;
}

function pageOf(title: string, content: Markup): string {
  const head = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>${title}</title>
<style>`;
  const rest = html`</style>
</head>
<body>
<main>
<p class="eyebrow">Berth conformance monitor · Provider Orchestrator API Contract</p>
${content}
</main>
</body>
</html>
`;
  return `${head.text}${STYLE}${rest.text}`;
}
