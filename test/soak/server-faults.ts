import { Dice, sleep } from './dice.ts';
import type { Journal } from './journal.ts';
import type { Server } from './setting.ts';

/** How long a server is stopped, in seconds: within its lease of 30 s, beyond it, and until what it was doing was given up. */
const STOPS_S = { 'short stop': [1, 8], 'stop beyond the lease': [32, 42], 'long stop': [62, 75] } as const;
const WEIGHTS = { kill: 6, 'short stop': 4, 'stop beyond the lease': 3, 'long stop': 1 };
const PAUSE_MS = [1_000, 6_000] as const;
const DOWN_MS = [0, 5_000] as const;

/**
 * Kills or stops one of the servers, again and again, until `until`; a stop that would last longer is a short one.
 * `wentOn` is called at the end of each stop.
 */
export async function injectServerFaults(
  servers: readonly Server[],
  journal: Journal,
  { seed, until, wentOn }: { seed: string; until: number; wentOn: (server: Server, from: number) => void },
): Promise<void> {
  const dice = new Dice(seed, 'faults');
  for (;;) {
    await sleep(dice.between(...PAUSE_MS));
    const server = dice.pick(servers);
    let fault = dice.weighted(WEIGHTS);
    let lengthMs = 0;
    if (fault !== 'kill') {
      const [least, most] = STOPS_S[fault];
      lengthMs = 1000 * dice.between(least, most);
      if (Date.now() + lengthMs > until) {
        fault = 'short stop';
        lengthMs = 1000 * dice.between(...STOPS_S[fault]);
      }
    }
    if (server === undefined || Date.now() + lengthMs > until) return;
    journal.say(`${fault} ${server.name}${lengthMs > 0 ? ` for ${(lengthMs / 1000).toFixed(1)} s` : ''}`);
    journal.fault(fault);
    if (fault === 'kill') {
      await server.end('SIGKILL');
      await sleep(dice.between(...DOWN_MS));
      await server.start();
    } else {
      const from = Date.now();
      server.signal('SIGSTOP');
      await sleep(lengthMs);
      server.signal('SIGCONT');
      wentOn(server, from);
    }
  }
}
