import { expect, it } from 'vitest';
import { createSeededRandom } from '../../src/drivers/kit/seeded-random.ts';
import { drain } from '../../src/orchestrator/operate/actions/drain.ts';
import { LISTED_MS, startPlainOrchestrator } from '../support/plain-orchestrator.ts';

const actor = { name: 'ann', source: 'cli', address: null } as const;

it('D1: a host does not read as empty while a machine is being made there', async () => {
  await using berth = await startPlainOrchestrator();
  const { driver } = berth.platform;
  const { create, list } = driver;
  // The platform chose n1, before the cordon, and is at it: `pending`, as Incus and libvirt answer for some seconds.
  let isMade = false;
  driver.create = async (spec, cookie) => {
    if (!isMade) return { outcome: 'pending', cookie: 'on n1', pollAfterMs: 1_000 };
    const step = await create.call(driver, spec, cookie === 'on n1' ? null : cookie);
    return step.outcome === 'done' ? { ...step, value: { ...step.value, host: 'n1' } } : step;
  };
  driver.list = async () => {
    const listing = await list.call(driver);
    return listing.answer === 'listed'
      ? { ...listing, items: listing.items.map((item) => ({ ...item, host: 'n1' })) }
      : listing;
  };
  const id = await berth.create();
  await berth.clock.advance(LISTED_MS);
  const { store } = berth.orchestrator;
  expect(await store.read.instances.byId(id)).toMatchObject({ status: 'PROVISIONING', host: null });
  const deps = {
    store,
    clock: berth.clock,
    random: createSeededRandom('drain'),
    catalog: berth.orchestrator.catalog,
    platforms: new Map([['default', { placesOnHosts: true }]]),
  } as never;
  const request = { kind: 'host', name: 'n1', reason: 'a disk is replaced' } as const;
  const drained = await drain.perform(deps, actor, request);
  // The operator switches n1 off now.
  isMade = true;
  await berth.passUntil(`/instances/${id}`, 'ONLINE');
  expect((await store.read.instances.byId(id))?.host).toBe('n1');
  // "Whether no machine is left, so that the work on it can begin."
  expect(drained.empty).toBe(false);
});
