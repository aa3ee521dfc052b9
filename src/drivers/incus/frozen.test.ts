import { expect, it } from 'vitest';
import type { Instance } from './api.ts';
import { driverOver } from './driver.fixture.ts';
import { mark, phases } from './translate.ts';

const REF = 'berth-a';

/** A machine with an address that has run, with this Incus status code. */
function aMachine(code: number) {
  const sent: unknown[] = [];
  const config = { [mark.createdBy]: 'berth', [mark.ref]: REF, [mark.phase]: phases.created };
  const address = { family: 'inet', address: '10.88.0.5', scope: 'global' };
  const instance = {
    name: REF,
    type: 'container',
    status_code: code,
    created_at: '2026-11-23T01:00:00Z',
    location: 'none',
    config,
    devices: {},
    state: { status_code: code, network: { eth0: { addresses: [address] } } },
  } as unknown as Instance;
  const api = {
    instance: async () => instance,
    hosts: async () => ({ answered: [], silent: [] }),
    client: {
      send: async (_method: string, _path: string, { body }: { body: unknown }) => {
        sent.push(body);
        return { operation: '5c3d55ca-a7c6-443f-a021-359f3a35c6c2' };
      },
    },
  };
  const read = async () => ({ instances: [instance], names: [REF], silent: new Set() });
  return { sent, machines: driverOver(api, { instances: { read } }) };
}

const PAUSED = { power: 'paused', detail: expect.stringContaining('frozen') };

it.each([
  ['freezing', 109],
  ['frozen', 110],
])(
  'a machine that is %s is paused, with a remedy, in list and in get [incus-frozen]',
  async (_state, code) => {
    const { machines } = aMachine(code);
    expect(await machines.get(REF)).toMatchObject({ answer: 'observed', value: PAUSED });
    expect(await machines.list()).toMatchObject({ items: [PAUSED] });
  },
);

it('a start resumes a frozen machine', async () => {
  const { machines, sent } = aMachine(110);
  expect(await machines.start(REF, null)).toMatchObject({ outcome: 'pending' });
  expect(sent).toEqual([{ action: 'unfreeze' }]);
});

it('a stop forces a frozen machine off, because it cannot shut down', async () => {
  const { machines, sent } = aMachine(110);
  expect(await machines.stop(REF, null)).toMatchObject({ outcome: 'pending' });
  expect(sent).toEqual([{ action: 'stop', force: true, timeout: -1 }]);
});

it('a thawed machine, and one that reports ready, are running', async () => {
  for (const code of [103, 111, 113])
    expect(await aMachine(code).machines.get(REF)).toMatchObject({ value: { power: 'running' } });
});
