import { formatUsd } from '../resources/budget.ts';
import { type Entry, isOpen } from '../resources/ledger.ts';
import { toCurl } from '../wire/curl.ts';
import { instancePath, volumePath } from '../wire/paths.ts';
import { printable } from '../wire/printable.ts';
import { NAME } from './program.ts';
import type { Terminal } from './terminal.ts';

/** Of what the target chose. */
export const SHOWN_CHARS = 200;

/** Says what of a run is left, with the commands that destroy it; false where there is nothing. */
export function tellLeftovers(entries: readonly Entry[], baseUrl: string, terminal: Terminal): boolean {
  const open = entries.filter(isOpen);
  if (open.length === 0) return false;
  terminal.err(leftoverLines(baseUrl, open));
  return true;
}

/** What may still be running, and how a person ends it. */
export function leftoverLines(baseUrl: string, open: readonly Entry[]): string {
  return [
    '',
    `MAY STILL BE RUNNING AND BILLING at ${baseUrl}:`,
    ...open.flatMap((entry) => linesOf(entry, baseUrl)),
    `\`${NAME} sweep ${baseUrl}\` tries again to destroy all of it.`,
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
  return `look for its name on the platform: the contract has no list of volumes. Once you know that it is not there: ${NAME} sweep ${baseUrl} --absent ${entry.name}`;
}
