import { setTimeout } from 'node:timers/promises';
import { span } from '../../operator-kit/views/values.ts';
import type { Clock } from '../../ports/clock.ts';
import { Fatal } from '../../ports/errors.ts';
import { printError, toPrintableLine } from '../../runtime/print.ts';
import type { Machine, Machines } from './machine.ts';

/** Most instances take minutes: the first polls are for those that do not. */
const FIRST_POLL_MS = 100;
const LONGEST_POLL_MS = 5_000;

/** Waits until an instance is ONLINE, and prints each change on the way. @throws {Fatal} if it failed or is gone */
export async function waitUntilOnline(
  machines: Pick<Machines, 'get'>,
  made: Pick<Machine, 'id' | 'region'>,
  clock: Pick<Clock, 'now'>,
): Promise<Machine> {
  const begun = clock.now();
  let shown = '';
  for (let pollMs = FIRST_POLL_MS; ; pollMs = Math.min(LONGEST_POLL_MS, pollMs * 1.5)) {
    const machine = await machines.get(made);
    if (machine === null) throw new Fatal(`${made.id} was destroyed before it was ONLINE.`);
    const { status, progress, error } = machine;
    const line = [status, progress].filter(Boolean).join('; ');
    if (line !== shown) printError(`${span(clock.now() - begun).padEnd(6)}  ${toPrintableLine(line)}\n`);
    shown = line;
    if (status === 'ONLINE') return machine;
    if (status !== 'PROVISIONING')
      throw new Fatal(
        `${made.id} is ${status}${error === null ? '' : `: ${error.replace(/\.$/, '')}`}. See \`berth instances show ${made.id}\`; \`berth instances rm ${made.id}\` removes it.`,
      );
    // A timer of the system's clock would let the process end.
    await setTimeout(pollMs);
  }
}
