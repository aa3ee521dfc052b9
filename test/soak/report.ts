import { type Journal, type Loss, sortedCounts } from './journal.ts';

interface Run {
  seed: string;
  minutes: number;
  servers: number;
}

export interface Report extends Run {
  operations: Record<string, number>;
  /** By operation and status; `lost`: there was no reply. */
  replies: Record<string, number>;
  faults: Record<string, number>;
  pickUps: { count: number; longestMs: number | null };
  /** How long a replica still showed what another one answered 404 for. */
  longestStaleMs: number;
  quietAfterMs: number | null;
  losses: readonly Loss[];
}

export function toReport(journal: Journal, run: Run): Report {
  const { operations, replies, faults, pickUpsMs, losses, quietAfterMs, longestStaleMs } = journal;
  return {
    ...run,
    operations: sortedCounts(operations),
    replies: sortedCounts(replies),
    faults: sortedCounts(faults),
    pickUps: { count: pickUpsMs.length, longestMs: pickUpsMs.length === 0 ? null : Math.max(...pickUpsMs) },
    longestStaleMs,
    quietAfterMs,
    losses,
  };
}

export function toText(report: Report): string {
  const { seed, minutes, servers, operations, replies, faults, pickUps, quietAfterMs, losses } = report;
  const table = (title: string, counts: Record<string, number>): string[] => [
    title,
    ...Object.entries(counts).map(([name, count]) => `  ${String(count).padStart(7)}  ${name}`),
  ];
  return `${[
    `${minutes} minutes, ${servers} servers, seed ${seed}`,
    ...table('Operations', operations),
    ...table('Replies', replies),
    ...table('Faults', faults),
    `Work of ${pickUps.count} killed servers was taken up after at most ${pickUps.longestMs ?? '-'} ms.`,
    `A replica showed an earlier state for ${report.longestStaleMs} ms at most.`,
    `Quiet, all books in balance, ${quietAfterMs ?? '-'} ms after the last fault.`,
    `Lost: ${losses.length}`,
    ...losses.slice(0, 20).map(({ at, what, details }) => `  ${at} ${what} ${JSON.stringify(details)}`),
  ].join('\n')}\n`;
}
