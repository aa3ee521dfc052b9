import type { Log } from '../../src/ports/log.ts';

/** What goes wrong ends the bench; the rest is not of interest. */
export const quietLog: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: (fields, message) => {
    throw new Error(`${message}: ${JSON.stringify(fields)}`);
  },
};
