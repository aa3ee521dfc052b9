import { instancePath } from '../contract/paths.ts';
import type { Clock } from '../http/clock.ts';
import type { TargetClient } from '../http/target-client.ts';
import { stringField } from '../text/json.ts';
import { printable } from '../text/printable.ts';
import { successOf } from '../transcript/exchange.ts';
import type { Entry, Ledger } from './ledger.ts';
import { reopenListed } from './presence.ts';

/** Until when destroyed instances are read again, after the last was gone. Some were seen to come back after six seconds. */
export const READ_AGAIN_MS = 30_000;
export const READ_AGAIN_STEP = 'cleanup/read-again';
const ROUND_MS = 10_000;
/** Number of instances that are read concurrently. */
const AT_ONCE = 8;

export interface ReadAgainOptions {
  client: TargetClient;
  ledger: Ledger;
  clock: Clock;
  signal?: AbortSignal | undefined;
}

/**
 * Reads all instances again that were read as gone, until the last has been gone for 30 s, and then lists all instances.
 * Opens the entries of those that are alive, and returns whether there are any.
 */
export async function readAgain(options: ReadAgainOptions): Promise<boolean> {
  const { client, ledger, clock, signal } = options;
  const gone = ledger.entries.filter(({ type, state, id }) => type === 'instance' && state === 'gone' && id);
  const goneForMs = clock.wall() - Math.max(...gone.map(({ goneAt }) => goneAt ?? 0));
  const end = clock.now() + READ_AGAIN_MS - Math.max(goneForMs, 0);
  for (;;) {
    for (let from = 0; from < gone.length; from += AT_ONCE)
      await Promise.all(gone.slice(from, from + AT_ONCE).map((entry) => readOne(options, entry)));
    const restMs = end - clock.now();
    if (restMs <= 0 || gone.length === 0) break;
    await clock.sleep(Math.min(restMs, ROUND_MS), signal);
  }
  reopenListed(ledger, await client.send('cleanup/last-list', { method: 'GET', path: '/instances' }, signal));
  return gone.some(({ state }) => state !== 'gone');
}

async function readOne({ client, ledger, signal }: ReadAgainOptions, entry: Entry): Promise<void> {
  const read = await client.send(READ_AGAIN_STEP, { method: 'GET', path: instancePath(entry) }, signal);
  const status = stringField(successOf(read), 'status');
  if (status === undefined || status === 'DESTROYED' || entry.state !== 'gone') return;
  ledger.reopen(entry, `it was read as gone, and is back: it reads ${printable(status, 40)}`);
}
