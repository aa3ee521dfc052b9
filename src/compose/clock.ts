import { isPostgres } from '../config/server-schema.ts';
import type { Clock } from '../ports/clock.ts';
import type { Log } from '../ports/log.ts';
import { createSharedClock, createSystemClock, type SharedClock } from '../runtime/system.ts';

/** The time of a server. */
export interface ServerClock {
  clock: Clock;
  /** Several servers share a PostgreSQL, and its time: the store tells it. Absent: the time is this machine's. */
  hearTime?: SharedClock['hear'];
}

/** The clock of a server on this database; what is odd about the time goes to the log. */
export function createServerClock(database: string, log: Log): ServerClock {
  if (!isPostgres(database)) return { clock: createSystemClock({ onJump: (byMs) => warnOfJump(log, byMs) }) };
  const clock = createSharedClock({
    onPause: (byMs) => warnOfPause(log, byMs),
    onJump: (byMs) => warnOfDisagreement(log, byMs),
  });
  return { clock, hearTime: clock.hear };
}

function warnOfJump(log: Log, byMs: number): void {
  log.warn(
    { byMs: Math.round(byMs) },
    'the clock of this machine was set: nothing runs out for it, the time here follows it by a tenth; a restart takes it over at once',
  );
}

function warnOfPause(log: Log, byMs: number): void {
  log.warn(
    { byMs: Math.round(byMs) },
    'this process was paused: the others have gone on, and its time with them',
  );
}

function warnOfDisagreement(log: Log, byMs: number): void {
  log.error(
    { byMs: Math.round(byMs) },
    "the database's clock has left the time here, and the clock of this machine does not agree with it: " +
      'the time here follows the database by a tenth; check NTP on both',
  );
}
