import { expect, it } from 'vitest';
import { unstoredAlarms } from '../../../test/support/doubles/alarms.ts';
import { VirtualClock } from '../../../test/support/time/virtual-clock.ts';
import type { Log } from '../../ports/log.ts';
import type { ExpectedMachine } from './expected-machines.ts';
import { MachineAlarms } from './machine-alarms.ts';
import { RunningEndpoints } from './sightings.ts';

const log = { error: () => undefined } as unknown as Log;
const endpoint = { publicIp: '203.0.113.10', sshPort: 30_000, sshUsername: 'debian' };

it.each([
  ['ONLINE', undefined, 1],
  ['DESTROYING', undefined, 0],
  ['DESTROYING', true, 1],
] as const)(
  'a fault of an instance that is %s, last known: %s, raises %d alarms',
  (status, isLastKnown, count) => {
    const alarms = unstoredAlarms(new VirtualClock());
    const round = new MachineAlarms({ alarms, platform: 'kvm', log, endpoints: new RunningEndpoints() });
    const machine = {
      ref: 'berth-a',
      power: 'running',
      createdAt: 0,
      ...(isLastKnown && { isLastKnown }),
    } as const;
    const row = { id: 'inst-a', status, endpoint } as unknown as ExpectedMachine;
    round.see(row, { ...machine, fault: { finding: 'libvirt does not answer about it', remedy: 'Look.' } });
    expect([...alarms.listOpen()]).toHaveLength(count);
  },
);

it('two machines of two platforms at one address and port are an alarm, until one of them is not there', () => {
  const alarms = unstoredAlarms(new VirtualClock());
  const endpoints = new RunningEndpoints();
  const list = (platform: string, power: 'running' | 'stopped') => {
    const round = new MachineAlarms({ alarms, platform, log, endpoints });
    const row = { id: `inst-${platform}`, status: 'ONLINE', endpoint } as unknown as ExpectedMachine;
    round.see(row, { ref: `berth-${platform}`, power, createdAt: 0, endpoint });
    round.close();
    return [...alarms.listOpen()].map(({ kind, subject, text }) => [
      kind,
      subject,
      text.slice(text.indexOf(' (')),
    ]);
  };
  expect(list('kvm', 'running')).toEqual([]);
  const shared = (between: string) => [['endpoint_shared', '203.0.113.10:30000', ` (${between})`]];
  expect(list('incus', 'running')).toEqual(shared('inst-kvm and inst-incus'));
  expect(list('kvm', 'running')).toEqual(shared('inst-incus and inst-kvm'));
  list('incus', 'stopped');
  expect(list('kvm', 'running')).toEqual([]);
});
