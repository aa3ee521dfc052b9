import { Alarms } from '../../../src/orchestrator/alarms/alarms.ts';
import { StoreUnavailable } from '../../../src/ports/errors.ts';

/** Alarms in memory alone. The caller that raises one passes the log. */
export function unstoredAlarms(clock: { now(): number }): Alarms {
  const transact = async (): Promise<never> => {
    throw new StoreUnavailable('there is none');
  };
  const list = transact;
  const store = { transact, read: { alarms: { list } } } as never;
  const none = () => undefined;
  return new Alarms({ store, clock, log: { warn: none, error: none }, server: 'here' });
}
