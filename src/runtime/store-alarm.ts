import { StoreUnavailable } from '../ports/errors.ts';
import type { Log } from '../ports/log.ts';

/**
 * `log` for all but `WriteHealth`, which logs one alarm while the database does not answer: what fails meanwhile for that
 * reason is a warning.
 */
export function withOneStoreAlarm(log: Log): Log {
  return {
    debug: (fields, message) => log.debug(fields, message),
    info: (fields, message) => log.info(fields, message),
    warn: (fields, message) => log.warn(fields, message),
    error: (fields, message) => {
      const isOfStore = 'err' in fields && fields.err instanceof StoreUnavailable;
      if (isOfStore) log.warn(fields, message);
      else log.error(fields, message);
    },
  };
}
