import type { Scheduler } from '../../test/support/time/scheduler.ts';

/**
 * Runs `work` with the timers of Node in virtual time: those of a driver, which has none from its process. What fires in a
 * process that is paused or dead reaches nothing outside of it.
 */
export async function withVirtualTimers<T>(scheduler: Scheduler, work: () => Promise<T>): Promise<T> {
  const { setTimeout: realSet, clearTimeout: realClear } = globalThis;
  const timers = new Map<object, () => void>();
  const set = (callback: (...args: unknown[]) => void, delayMs = 0, ...args: unknown[]): object => {
    const timer = { ref: () => timer, unref: () => timer, hasRef: () => true };
    const { cancel } = scheduler.after(delayMs, () => timers.delete(timer) && callback(...args));
    timers.set(timer, cancel);
    return timer;
  };
  const clear = (timer: object | undefined): void => {
    if (timer === undefined) return;
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
