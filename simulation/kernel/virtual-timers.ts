import { AsyncLocalStorage } from 'node:async_hooks';
import type { Scheduler } from '../../test/support/time/scheduler.ts';

const realTime = new AsyncLocalStorage<true>();

/** Runs `work`, which asks something outside of the simulation, with Node's own timers. */
export const inRealTime = <T>(work: () => Promise<T>): Promise<T> => realTime.run(true, work);

/** Runs a part of the simulation that what runs in real time calls, such as a listener. */
export const inVirtualTime = <T>(work: () => T): T => realTime.exit(work);

/**
 * Runs `work` with the timers of Node in virtual time: those of a driver, which has none from its process. What fires in a
 * process that is paused or dead reaches nothing outside of it.
 */
export async function withVirtualTimers<T>(scheduler: Scheduler, work: () => Promise<T>): Promise<T> {
  const { setTimeout: realSet, clearTimeout: realClear } = globalThis;
  const timers = new Map<object, () => void>();
  const set = (callback: (...args: unknown[]) => void, delayMs = 0, ...args: unknown[]): object => {
    if (realTime.getStore()) return realSet(callback, delayMs, ...args);
    const timer = { ref: () => timer, unref: () => timer, hasRef: () => true };
    const { cancel } = scheduler.after(delayMs, () => timers.delete(timer) && callback(...args));
    timers.set(timer, cancel);
    return timer;
  };
  const clear = (timer: object | undefined): void => {
    if (timer === undefined) return;
    if (!timers.has(timer)) {
      realClear(timer as NodeJS.Timeout);
      return;
    }
    timers.get(timer)?.();
    timers.delete(timer);
  };
  Object.assign(globalThis, { setTimeout: set, clearTimeout: clear });
  try {
    return await work();
  } finally {
    Object.assign(globalThis, { setTimeout: realSet, clearTimeout: realClear });
  }
}
