import { conformance } from '../../../conformance/cli.ts';
import { type Clock, systemClock } from '../../../conformance/http/clock.ts';

/**
 * `berth conformance …` whose minutes take half a second: only its requests and logins take real time. CLOCK_FROM is when
 * its clock begins to run fast, so that a second process does not start in the first one's past.
 */
const SPEED = 120;
const startedAt = Number(process.env['CLOCK_FROM']);

const clock: Clock = {
  now: () => systemClock.now() * SPEED,
  wall: () => startedAt + (Date.now() - startedAt) * SPEED,
  sleep: (ms, signal) => systemClock.sleep(ms / SPEED, signal),
};

process.exitCode = await conformance(process.argv.slice(2), { clock });
