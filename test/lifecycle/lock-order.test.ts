import { expect, it } from 'vitest';
import { watchLocks } from '../support/databases/lock-order.ts';
import { startPlainOrchestrator } from '../support/plain-orchestrator.ts';

it.each(['hot', 'cold'] as const)(
  'every transaction locks instances before volumes, by id, and each row before its work (volumes: %s)',
  async (attachVolume) => {
    const violations = new Set<string>();
    await using berth = await startPlainOrchestrator(() => 'none', {
      manifest: { attachVolume },
      wrapStore: (store) => watchLocks(store, (violation) => violations.add(violation)),
    });
    const { orchestrator, create, createVolume, passUntil, post, clock } = berth;
    const type = orchestrator.catalog.regions
      .get('eu-frankfurt')
      ?.volumeTypes.find(({ shareable }) => shareable)?.name;

    const volumes: string[] = [];
    for (let index = 0; index < 5; index++) volumes.push(await createVolume({ type }));
    for (const id of volumes) await passUntil(`/volumes/${id}`, 'AVAILABLE');
    const backwards = volumes.sort().toReversed();
    const instances = [await create({ volume_ids: backwards.slice(0, 3) }), await create(), await create()];
    for (const id of instances) await passUntil(`/instances/${id}`, 'ONLINE');
    for (const id of backwards.slice(0, 3)) await passUntil(`/volumes/${id}`, 'ATTACHED');
    const all = instances.sort().toReversed();
    const inline = await createVolume({ type, instance_ids: all });
    await passUntil(`/volumes/${inline}`, 'ATTACHED');
    for (const id of backwards) {
      await post(`/volumes/${id}/attach`, { instance_ids: all });
      await passUntil(`/volumes/${id}`, 'ATTACHED');
    }
    for (const id of all) await passUntil(`/instances/${id}`, 'ONLINE');
    await post(`/volumes/${inline}/detach`, { instance_ids: [all[0]] });
    await clock.advance(20_000);
    for (const id of all) await passUntil(`/instances/${id}`, 'ONLINE');

    await post(`/instances/${all[0]}/stop`);
    await passUntil(`/instances/${all[0]}`, 'STOPPED');
    await post(`/instances/${all[0]}/start`);
    await passUntil(`/instances/${all[0]}`, 'ONLINE');
    await post(`/volumes/${inline}/detach`);
    await orchestrator.request('DELETE', `/volumes/${inline}`);
    for (const id of all) await orchestrator.request('DELETE', `/instances/${id}`);
    await passUntil(`/volumes/${inline}`, 'GONE');
    for (const id of all) await passUntil(`/instances/${id}`, 'GONE');
    for (const id of volumes) await passUntil(`/volumes/${id}`, 'AVAILABLE');

    expect([...violations]).toEqual([]);
  },
);
