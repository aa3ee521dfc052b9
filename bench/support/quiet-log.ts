import type { Log } from '../../src/ports/log.ts';

/** A log that discards everything except errors, which end the bench. */
export const quietLog: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: (fields, message) => {
    throw new Error(`${message}: ${JSON.stringify(fields)}`);
  },
};
