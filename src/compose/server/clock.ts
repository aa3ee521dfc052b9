import { isPostgres } from '../../config/server-schema.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Log } from '../../ports/log.ts';
import { createSharedClock, createSystemClock, type SharedClock } from '../../runtime/system.ts';

export interface ServerClock {
  clock: Clock;
  /** Servers on one PostgreSQL database share its time, which the store reads. */
  storeOptions: { hearTime?: SharedClock['hear'] };
}

/** Creates the clock of a server on this database. Jumps and pauses are logged. */
export function createServerClock(database: string, log: Log): ServerClock {
  if (!isPostgres(database))
    return { clock: createSystemClock({ onJump: (byMs) => warnOfJump(log, byMs) }), storeOptions: {} };
  const clock = createSharedClock({
    onPause: (byMs) => warnOfPause(log, byMs),
    onJump: (byMs) => warnOfDisagreement(log, byMs),
  });
  return { clock, storeOptions: { hearTime: clock.hear } };
}

function warnOfJump(log: Log, byMs: number): void {
  log.warn(
    { byMs: Math.round(byMs) },
    'the clock of this machine was changed: so that nothing expires early, this process approaches the new time at a tenth of real time; restart it to use the new time at once',
  );
}

function warnOfPause(log: Log, byMs: number): void {
  log.warn(
    { byMs: Math.round(byMs) },
    'this process was paused while the other servers ran: its time was moved forward to theirs',
  );
}

function warnOfDisagreement(log: Log, byMs: number): void {
  log.error(
    { byMs: Math.round(byMs) },
    "the database's clock differs from the time of this process, and from the clock of this machine: this process " +
      'approaches the time of the database at a tenth of real time; check NTP on both',
  );
}
