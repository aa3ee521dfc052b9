import { StoreUnavailable } from '../ports/errors.ts';
import type { Log } from '../ports/log.ts';

/**
 * Logs an error that the database caused as a warning: `WriteHealth` logs the one alarm while the database does not
 * answer, and must use the original log.
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
