import { expect, it } from 'vitest';
import { collectLog } from '../../test/support/doubles/log.ts';
import { StoreUnavailable } from '../ports/errors.ts';
import { withOneStoreAlarm } from './write-health.ts';

it('logs a failure of an unavailable database as a warning, any other as an error', () => {
  const { log, lines } = collectLog();
  const quiet = withOneStoreAlarm(log);
  quiet.error({ err: new StoreUnavailable('57P01') }, 'a step failed with an error');
  quiet.error({ err: new Error('a bug') }, 'a step failed with an error');
  quiet.error({}, 'an alarm');
  expect(lines.map(({ level }) => level)).toEqual(['warn', 'error', 'error']);
});
