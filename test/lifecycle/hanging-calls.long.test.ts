import { expect, it } from 'vitest';
import type { DriverCall } from '../../src/platform-model/call-faults.ts';
import { startPlainOrchestrator } from '../support/plain-orchestrator.ts';

const HANGING = 300;

it('hundreds of calls that hang delay neither another instance nor a volume [hanging-calls]', async () => {
  const hanging = new Set<string>();
  const plan = ({ method, ref = '' }: DriverCall) =>
    method === 'create' && hanging.has(ref) ? 'hang' : 'none';
  await using berth = await startPlainOrchestrator(plan, {
    changeOffer: (offer) => ({
      ...offer,
      placements: offer.placements.map((placement) => ({ ...placement, units: 1_000 })),
    }),
  });
  const { orchestrator, create, createVolume, passUntil, read, count } = berth;
  const ids: string[] = [];
  berth.setPlan(({ method }) => (method === 'create' ? 'hang' : 'none'));
  for (let index = 0; index < HANGING; index++) {
    const id = await create();
    ids.push(id);
    hanging.add((await orchestrator.store.read.instances.byId(id))?.ownerRef ?? '');
  }
  berth.setPlan(plan);

  const volume = await createVolume();
  expect(await passUntil(`/volumes/${volume}`, 'AVAILABLE')).toBeLessThan(500);
  const id = await create();
  const tookMs = await passUntil(`/instances/${id}`, 'ONLINE');

  expect(tookMs).toBeLessThan(12_000);
  expect(count('create')).toBeGreaterThan(HANGING);
  for (const stuck of ids) expect((await read(`/instances/${stuck}`))['status']).toBe('PROVISIONING');
});
