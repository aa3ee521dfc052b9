import { expect, it } from 'vitest';
import type { Instance, Operation } from './api.ts';
import { driverOver } from './driver.fixture.ts';
import { mark } from './translate.ts';

const REF = 'berth-inst-a';
const config = { [mark.createdBy]: 'berth', [mark.ref]: REF, [mark.note]: 'a note', [mark.phase]: 'created' };

/**
 * `incus move NAME --target m2` and `incus cluster evacuate m1`, as in instancePostClusteringMigrate: copy under a
 * temporary name on the other member, delete the instance, rename the copy. The test runs between the last two.
 */
it('I1: a machine that an operator moves to another member is not gone between the deletion there and the rename here', async () => {
  const copy = {
    name: 'move-of-6a1f8d0c',
    type: 'container',
    status_code: 102,
    created_at: '2026-11-23T01:00:00Z',
    location: 'm2',
    config,
    expanded_config: config,
    devices: {},
    expanded_devices: {},
    state: { status_code: 102 },
  } as unknown as Instance;
  const moving: Operation = {
    id: '00000000-0000-4000-8000-000000000001',
    created_at: '2026-11-23T02:00:00Z',
    description: 'Migrating instance',
    status_code: 103,
    resources: { instances: [`/1.0/instances/${REF}`] },
  };
  const api = {
    instance: async (name: string) => (name === copy.name ? copy : undefined),
    instances: async () => [copy],
    instancesWithoutState: async () => [copy],
    operations: async () => [moving],
    assertProject: async () => undefined,
    hosts: async () => ({ answered: ['m1', 'm2'], silent: [] }),
    client: { project: 'default' },
  };
  const machines = driverOver(api);
  const [found, listing] = [await machines.get(REF), await machines.list()];
  // Together they prove absence (decision 11): a STOPPED instance ends OFFLINE, an ONLINE one ERROR. The next step is
  // `destroy`, which deletes the machine once it has its name again.
  const isProvedGone =
    found.answer === 'gone' && listing.answer === 'listed' && listing.items.every(({ ref }) => ref !== REF);
  expect(isProvedGone).toBe(false);
});

/** A successor's record may replace that of an instance: Incus identifies instances by name, without a generation. */
it('I2: a late deletion of an unfinished instance does not delete the finished one that now has its name', async () => {
  const base = {
    name: REF,
    type: 'container',
    created_at: '2026-11-23T01:00:00Z',
    location: 'none',
    devices: {},
    expanded_devices: {},
  };
  const marks = { [mark.createdBy]: 'berth', [mark.ref]: REF, [mark.note]: 'a note' };
  const make = (config: Record<string, string>, disk: string) =>
    ({
      ...base,
      config,
      expanded_config: config,
      status_code: 102,
      state: { status_code: 102 },
      disk,
    }) as unknown as Instance & { disk: string };
  // An interrupted creation: a record without `built` and without an operation.
  let instance: (Instance & { disk: string }) | undefined = make(marks, 'half an image');
  const arrives = Promise.withResolvers<void>();
  const isSent = Promise.withResolvers<void>();
  const api = {
    instance: async () => instance,
    operations: async () => [],
    operation: async () => undefined,
    assertProject: async () => undefined,
    hosts: async () => ({ answered: [], silent: [] }),
    client: {
      project: 'default',
      send: async (method: string) => {
        if (method !== 'DELETE') return { metadata: null, etag: undefined, operation: undefined };
        isSent.resolve();
        await arrives.promise;
        if (instance?.status_code !== 102) throw new Error('Instance is running');
        instance = undefined;
        return { metadata: null, etag: undefined, operation: undefined };
      },
    },
  };
  const machines = driverOver(api);
  const spec = { ref: REF, offerId: 'small', datacenter: 'd', note: 'a note' } as never;
  const slept = machines.create(spec, null).catch(() => undefined);
  await Promise.race([isSent.promise, slept]);
  // The lease has expired. Another server made the machine again; its tenant wrote data and stopped it.
  instance = make({ ...marks, [mark.phase]: 'created' }, 'what the tenant wrote');
  arrives.resolve();
  await slept;
  expect(instance?.disk).toBe('what the tenant wrote');
  expect(await slept).toMatchObject({ outcome: 'failed', code: 'unfinished', sideEffect: 'certain' });
});
