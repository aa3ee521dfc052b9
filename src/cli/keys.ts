import type { Command } from 'commander';
import { stateOfKey } from '../orchestrator/operate/views/accounts.ts';
import { parseTimeToCome } from './parse.ts';
import { type Column, type OutputFlag, printDone, toJsonTime, toTime, withOutput } from './print-records.ts';

/** The flags of both products' `keys create`. */
export interface NewKeyFlags extends OutputFlag {
  label?: string;
  expires?: string;
}

export function withNewKeyFlags(command: Command): Command {
  return withOutput(
    command
      .description('create a key and print it; it is shown only this once')
      .option('--label <text>', 'what it is for')
      .option('--expires <when>', 'when it ends: in 30m, 2h or 7d, or at an RFC 3339 time'),
  );
}

/** When the key expires; null: never. @throws {Fatal} */
export function parseExpiry({ expires }: NewKeyFlags, now: number): number | null {
  return expires === undefined ? null : parseTimeToCome('--expires', expires, now);
}

export function printNewKey(key: string, id: string, flags: NewKeyFlags): void {
  printKey(flags, { id, api_key: key }, key, `key ${id}`);
}

/** Prints a new key. It cannot be shown again. */
export function printKey(flags: OutputFlag, value: object, key: string, what: string): void {
  printDone(flags, value, key, '', `This is ${what}. Keep it now: it is not shown again.`);
}

export function printRevoked(flags: OutputFlag, id: string, revokedAt: number | null): void {
  const sentence = `Key ${id} is revoked since ${toTime(revokedAt)}.`;
  printDone(flags, { id, revoked_at: toJsonTime(revokedAt) }, sentence);
}

interface ShownKey {
  id: string;
  prefix: string;
  lastFour: string;
  label: string | null;
  createdAt: number;
  expiresAt: number | null;
  revokedAt: number | null;
  lastUsedAt: number | null;
}

/** The columns of a key; `owner` shows its holder. */
export function keyColumns<Key extends ShownKey>(owner: Column<Key>, now: number): Column<Key>[] {
  return [
    { head: 'ID', key: 'id', value: ({ id }) => id },
    owner,
    { head: 'KEY', key: 'key', value: ({ prefix, lastFour }) => `${prefix}…${lastFour}` },
    { head: 'LABEL', key: 'label', value: ({ label }) => label, none: '' },
    { head: 'STATE', key: 'state', value: (key) => stateOfKey(key, now) },
    { head: 'CREATED', key: 'created_at', value: ({ createdAt }) => toJsonTime(createdAt) },
    { head: 'EXPIRES', key: 'expires_at', value: ({ expiresAt }) => toJsonTime(expiresAt) },
    { head: 'LAST USED', key: 'last_used_at', value: ({ lastUsedAt }) => toJsonTime(lastUsedAt) },
  ];
}
