import { expect, it } from 'vitest';
import { collectLog } from '../../../test/support/doubles/log.ts';
import { VirtualClock } from '../../../test/support/time/virtual-clock.ts';
import { hourlyLog } from './providers.ts';

it('logs an element that cannot be read once an hour, however often its list is read', async () => {
  const clock = new VirtualClock();
  const { log, lines } = collectLog();
  const say = hourlyLog({ clock, log });
  const tell = () => {
    for (const index of [0, 1]) say('one', { call: 'listInstances', message: `instances[${index}]: no id` });
  };
  tell();
  tell();
  expect(lines).toHaveLength(2);
  await clock.advance(3_600_000);
  tell();
  expect(lines).toHaveLength(4);
});
