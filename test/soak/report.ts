import type { Bills } from './bills.ts';
import { type Journal, type Loss, sortedCounts } from './journal.ts';

export interface Run {
  seed: string;
  minutes: number;
  deployments: number;
  servers: number;
}

export interface Report extends Run {
  operations: Record<string, number>;
  /** By operation and status; `lost`: there was no reply. */
  replies: Record<string, number>;
  faults: Record<string, number>;
  /** How many deeds of each kind the provider wrote down. */
  deeds: Record<string, number>;
  quietAfterMs: number | null;
  /** Null: the run broke off before. */
  bills: Omit<Bills, 'findings'> | null;
  findings: Record<string, { count: number; examples: readonly Loss[] }>;
}

const EXAMPLES = 5;

export function toReport(
  journal: Journal,
  run: Run,
  found: { deeds: Record<string, number>; bills: Bills | null },
): Report {
  const { operations, replies, faults, losses, quietAfterMs } = journal;
  const findings: Report['findings'] = {};
  for (const loss of losses) {
    const { count = 0, examples = [] } = findings[loss.what] ?? {};
    findings[loss.what] = { count: count + 1, examples: [...examples, loss].slice(0, EXAMPLES) };
  }
  const { bills } = found;
  return {
    ...run,
    operations: sortedCounts(operations),
    replies: sortedCounts(replies),
    faults: sortedCounts(faults),
    deeds: found.deeds,
    quietAfterMs,
    bills:
      bills === null
        ? null
        : { billedMicroUsd: bills.billedMicroUsd, expectedMicroUsd: bills.expectedMicroUsd },
    findings,
  };
}

export function toText(report: Report): string {
  const { seed, minutes, servers, deployments, quietAfterMs, bills, findings } = report;
  const table = (title: string, counts: Record<string, number>): string[] => [
    title,
    ...Object.entries(counts).map(([name, count]) => `  ${String(count).padStart(7)}  ${name}`),
  ];
  const usd = (microUsd: number): string => `$${(microUsd / 1e6).toFixed(6)}`;
  return `${[
    `${minutes} minutes, ${servers} servers, ${deployments} deployments, seed ${seed}`,
    ...table('Orders', report.operations),
    ...table('Replies', report.replies),
    ...table('Faults', report.faults),
    ...table('What the provider did', report.deeds),
    `Quiet, rows and provider in agreement, ${quietAfterMs ?? '-'} ms after the last fault.`,
    bills === null
      ? 'The books were not looked at.'
      : `Billed ${usd(bills.billedMicroUsd)}; by the provider's journal ${usd(bills.expectedMicroUsd)}.`,
    `Findings: ${Object.values(findings).reduce((sum, { count }) => sum + count, 0)}`,
    ...Object.entries(findings).flatMap(([what, { count, examples }]) => [
      `  ${count} × ${what}`,
      ...examples.map(({ at, details }) => `      ${at} ${JSON.stringify(details)}`),
    ]),
  ].join('\n')}\n`;
}
