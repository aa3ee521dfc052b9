import { expect, it } from 'vitest';
import { aMachine, anIncus, REF, STOPPED } from './fake-incus.fixture.ts';

const RUNNING = 103;
const READ_ONLY = 'Failed to run: btrfs subvolume create x: exit status 1 (Read-only file system)';
const ROOT_IMG = 'POOL/custom/default_berth-trial-write.iso/root.img';

it.each<[string, { code?: number; disk?: object; refusal?: string; failure?: string }, string | undefined]>([
  ['is read-only', { refusal: READ_ONLY }, 'on m1 is read-only'],
  ['is read-only, while it is stopped', { code: STOPPED, refusal: READ_ONLY }, 'on m1 is read-only'],
  ['cannot be read', { refusal: 'cannot access x: Input/output error', disk: {} }, 'on m1 is broken'],
  ['is full', { refusal: 'mkdir: No space left on device' }, 'on m1 is full'],
  ['has room for metadata alone', { failure: `write ${ROOT_IMG}: no space left on device` }, 'on m1 is full'],
  ['refuses a write for another reason', { refusal: 'Storage volume exists' }, undefined],
  ['has no disk of it', { disk: {} }, 'disk in the pool default is missing'],
  ['has no disk of it, while it is stopped', { code: STOPPED, disk: {} }, 'is missing'],
  ['is fine', {}, undefined],
])(
  'a machine whose pool %s [incus-pool-fault]',
  async (_what, { code = RUNNING, disk, ...answers }, fault) => {
    const { machines, instances, pool } = anIncus();
    instances.set(REF, { ...aMachine({ code }), ...(disk && { disk }) });
    Object.assign(pool, { driver: 'btrfs', ...answers });
    const isUnwritable = fault !== undefined && (answers.refusal ?? answers.failure) !== undefined;
    const hosts = [{ host: 'm1', diskGb: { total: isUnwritable ? 0 : 1024 } }, { host: 'm2' }];
    expect(await machines.inventory()).toMatchObject({ hosts });
    const [item] = ((await machines.list()) as { items: { fault?: object }[] }).items;
    expect(item?.fault).toEqual(
      fault && { finding: expect.stringContaining(fault), remedy: expect.any(String) },
    );
  },
);

it('a single daemon that shows a machine in the state Error has answered: the machine has a fault [incus-single-error]', async () => {
  const { machines, instances } = anIncus({ isClustered: false });
  instances.set(REF, { ...aMachine({ code: 112 }), location: 'none' });
  expect(await machines.list()).toMatchObject({
    items: [{ ref: REF, power: 'stopping', fault: { finding: expect.stringContaining('state Error') } }],
    hosts: { answered: ['none'], silent: [] },
  });
  expect(await machines.get(REF)).toMatchObject({ answer: 'unknown' });
  expect(await machines.inventory()).toMatchObject({ answer: 'counted', hosts: [{ state: 'open' }] });
});
