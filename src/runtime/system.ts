import { randomBytes } from 'node:crypto';
import type { Clock, Random } from '../orchestrator/ports/clock.ts';

export const systemClock: Clock = {
  now: () => Date.now(),
  setTimer(delayMs, callback) {
    const timeout = setTimeout(callback, Math.max(0, delayMs));
    timeout.unref();
    return { cancel: () => clearTimeout(timeout) };
  },
};

export const systemRandom: Random = {
  next: () => Math.random(),
  bytes: (length) => randomBytes(length),
};
