import { readOpenLedgers, type StoredLedger } from '../resources/ledger-file.ts';
import { openOf } from '../resources/sweep.ts';
import { isTakenToLive } from '../resources/sweep-lock.ts';
import { NAME } from './program.ts';
import type { Terminal } from './terminal.ts';

/** Says that earlier runs left something, and how it is destroyed. */
export function tellOpenLedgers(folder: string, baseUrl: string, terminal: Terminal): void {
  const left = openLedgers(folder).filter(
    (ledger) =>
      ledger.baseUrl === baseUrl &&
      (ledger.process === undefined || !isTakenToLive(ledger.process, ledger.touchedAt)),
  );
  if (left.length === 0) return;
  const count = left.reduce((sum, ledger) => sum + openOf(ledger).length, 0);
  terminal.err(
    `NOTE    Earlier runs (${left.map(({ runId }) => runId).join(', ')}) were cut off and may have left ${count === 1 ? 'a machine or volume' : `${count} machines or volumes`} to be billed: \`${NAME} sweep ${baseUrl}\` destroys them.\n`,
  );
}

function openLedgers(folder: string): StoredLedger[] {
  try {
    return readOpenLedgers(folder);
  } catch {
    // The look at the folder itself says what is wrong with it.
    return [];
  }
}
