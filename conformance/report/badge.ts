import { notAskedIn } from './features.ts';
import type { Report } from './report.ts';

const COLOURS: Readonly<Record<Report['outcome'], string>> = {
  CONFORMANT: '#2e7d32',
  'NON-CONFORMANT': '#c62828',
  INCOMPLETE: '#b26a00',
};
const LABEL = 'Provider Orchestrator API';
const CHARACTER = 7;
const PADDING = 10;

/** The outcome as an SVG image. */
export function toBadge(report: Report): string {
  const { outcome, level, contract_version } = report;
  const left = notAskedIn(report).length;
  const text = `${outcome.toLowerCase()}, ${level}${left === 0 ? '' : `, ${left} not asked`}`;
  return badge(contract_version, text, COLOURS[outcome]);
}

/** An SVG image with the contract at its left and `text` at its right: plain words, with no markup in them. */
export function badge(contractVersion: string, text: string, colour: string): string {
  const label = `${LABEL} ${contractVersion}`;
  const left = label.length * CHARACTER + PADDING * 2;
  const width = left + text.length * CHARACTER + PADDING * 2;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="20" role="img" aria-label="${label}: ${text}">`,
    `  <title>${label}: ${text}</title>`,
    `  <rect width="${width}" height="20" rx="3" fill="#444"/>`,
    `  <rect x="${left}" width="${width - left}" height="20" rx="3" fill="${colour}"/>`,
    '  <g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" text-anchor="middle">',
    `    <text x="${left / 2}" y="14">${label}</text>`,
    `    <text x="${(left + width) / 2}" y="14">${text}</text>`,
    '  </g>',
    '</svg>',
    '',
  ].join('\n');
}
