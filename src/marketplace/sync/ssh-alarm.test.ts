import { expect, it } from 'vitest';
import { SshAlarm } from './ssh-alarm.ts';
import { countLines, HOUR_MS, openProviderWorkers, read, running } from './sync.fixture.ts';

it('the SSH alarm is not raised where a machine is proved during the read of the last proof [alarm-proved-meanwhile]', async () => {
  const setup = await openProviderWorkers();
  const { id } = await running(setup);
  const record = await read(setup, id);
  const alarm = new SshAlarm(setup.deps, 'provider-x');
  setup.store.read.deployments.lastProvedAt = async () => {
    alarm.proved('dep-2');
    return null;
  };
  await alarm.failed(record, setup.clock.now() - HOUR_MS, 'auth');
  expect(countLines(setup.logged, 'error', 'SSH')).toBe(0);
  await setup.close();
});
