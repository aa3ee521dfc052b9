import { type OutputFlag, printDone, toJsonTime, toTime } from './print-records.ts';

/** Prints a new key. It cannot be shown again. */
export function printKey(flags: OutputFlag, value: object, key: string, what: string): void {
  printDone(flags, value, key, '', `This is ${what}. Keep it now: it is not shown again.`);
}

export function printRevoked(flags: OutputFlag, id: string, revokedAt: number | null): void {
  const sentence = `Key ${id} is revoked since ${toTime(revokedAt)}.`;
  printDone(flags, { id, revoked_at: toJsonTime(revokedAt) }, sentence);
}
