/** The suite's source of time. Tests use a virtual one. */
export interface Clock {
  /** Milliseconds on a monotonic clock. */
  now(): number;
  /** The wall clock, in milliseconds since the epoch. */
  wall(): number;
  /** Rejects with the signal's reason when that is aborted. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

export const systemClock: Clock = {
  now: () => performance.now(),
  wall: () => Date.now(),
  sleep: (ms, signal) =>
    new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const stop = () => {
        clearTimeout(timer);
        reject(signal?.reason);
      };
      const timer = setTimeout(() => {
        signal?.removeEventListener('abort', stop);
        resolve();
      }, ms);
      signal?.addEventListener('abort', stop, { once: true });
    }),
};
