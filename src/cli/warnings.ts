import type { Config } from '../config/schema.ts';
import type { Log } from '../ports/log.ts';
import type { createSharedClock } from '../runtime/system.ts';
import { isLoopback } from './listen.ts';

/** HTTPS is asked for by both contracts; the admin listener has none, and asks for no key. */
export function warnOfPlainHttp(log: Log, { server }: Pick<Config, 'server'>): void {
  if (server.admin.enabled && !isLoopback(server.admin.host))
    log.warn(
      { host: server.admin.host },
      'the metrics are served beyond this machine, to everybody who reaches the port: see that only your Prometheus does',
    );
  if (server.tls === undefined && !isLoopback(server.host))
    log.warn(
      { host: server.host },
      'serving plain HTTP beyond this machine: the contract asks for HTTPS; set --tls-cert and --tls-key, or put a proxy in front',
    );
}

/** For the clock of one process. */
export function warnOfJump(log: Log, byMs: number): void {
  log.warn(
    { byMs: Math.round(byMs) },
    'the clock of this machine was set: nothing runs out for it, the time here follows it by a tenth; a restart takes it over at once',
  );
}

/** For the clock that several processes share. */
export function tellClock(log: Log): Parameters<typeof createSharedClock>[0] {
  return {
    onPause: (byMs) =>
      log.warn(
        { byMs: Math.round(byMs) },
        'this process was paused: the others have gone on, and its time with them',
      ),
    onJump: (byMs) =>
      log.error(
        { byMs: Math.round(byMs) },
        "the database's clock has left the time here, and the clock of this machine does not agree with it: " +
          'the time here follows the database by a tenth; check NTP on both',
      ),
  };
}
