import { instancePath, volumePath } from '../contract/paths.ts';
import { toCurl } from '../http/curl.ts';
import { formatUsd } from '../resources/budget.ts';
import { type Entry, isOpen } from '../resources/ledger.ts';
import { readOpenLedgers, type StoredLedger } from '../resources/ledger-file.ts';
import { openEntries } from '../resources/sweep.ts';
import { isPresumedAlive } from '../resources/sweep-lock.ts';
import { printable } from '../text/printable.ts';
import { NAME } from './program.ts';
import type { Terminal } from './terminal.ts';

/** Length limit for text that comes from the target. */
export const SHOWN_CHARS = 200;

/** Reports the open entries of a run and the commands that destroy them. False if there are none. */
export function reportLeftovers(entries: readonly Entry[], baseUrl: string, terminal: Terminal): boolean {
  const open = entries.filter(isOpen);
  if (open.length === 0) return false;
  terminal.err(leftoverLines(baseUrl, open));
  return true;
}

/** The resources that may still be running, and how to destroy them. */
export function leftoverLines(baseUrl: string, open: readonly Entry[]): string {
  return [
    '',
    `MAY STILL BE RUNNING AND BILLING at ${baseUrl}:`,
    ...open.flatMap((entry) => linesOf(entry, baseUrl)),
    `\`${NAME} sweep ${baseUrl}\` tries again to destroy everything.`,
    '',
  ].join('\n');
}

function linesOf(entry: Entry, baseUrl: string): string[] {
  const { type, id, name, note, pricePerHour } = entry;
  const price = pricePerHour === undefined ? '' : `, ${formatUsd(pricePerHour)} an hour`;
  const which = id === undefined ? 'if it exists' : `id ${printable(id, SHOWN_CHARS)}`;
  const what = `${type} ${printable(name, SHOWN_CHARS)}, ${which}`;
  return [
    `  ${what}${price}${note === undefined ? '' : ` (${printable(note, SHOWN_CHARS)})`}`,
    `    ${howToEnd(entry, baseUrl)}`,
  ];
}

function howToEnd(entry: Entry, baseUrl: string): string {
  const headers = { authorization: 'Bearer [redacted: api key]' };
  const curl = (method: string, path: string): string =>
    toCurl({ method, url: `${baseUrl}${path}`, headers });
  if (entry.id !== undefined)
    return curl('DELETE', entry.type === 'instance' ? instancePath(entry) : volumePath(entry));
  if (entry.type === 'instance') return `look for its name in: ${curl('GET', '/instances')}`;
  return `look for its name on the platform: the contract has no list of volumes. If it is not there: ${NAME} sweep ${baseUrl} --absent ${entry.name}`;
}

/** Reports leftovers of earlier runs, and how to destroy them. */
export function reportOpenLedgers(folder: string, baseUrl: string, terminal: Terminal): void {
  const left = openLedgers(folder).filter(
    (ledger) =>
      ledger.baseUrl === baseUrl &&
      (ledger.process === undefined || !isPresumedAlive(ledger.process, ledger.touchedAt)),
  );
  if (left.length === 0) return;
  const count = left.reduce((sum, ledger) => sum + openEntries(ledger).length, 0);
  terminal.err(
    `NOTE    Earlier runs (${left.map(({ runId }) => runId).join(', ')}) may have left ${count === 1 ? 'a machine or volume' : `${count} machines or volumes`} that are billed: \`${NAME} sweep ${baseUrl}\` destroys them.\n`,
  );
}

function openLedgers(folder: string): StoredLedger[] {
  try {
    return readOpenLedgers(folder);
  } catch {
    // The check of the folder reports such errors.
    return [];
  }
}
