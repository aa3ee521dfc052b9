import { it } from 'vitest';
import { nameOf } from '../lab-server.ts';
import { type Moment, upgradeMidway } from '../upgrade.suite.ts';
import { catalogOf, offer, region } from './catalog.ts';
import { image, startCluster } from './cluster.ts';
import { openRequestGate } from './request-gate.ts';

it('after an upgrade this version finishes the creates, deletes and moves of the earlier one, and what ran runs on [incus-upgrade]', async () => {
  await using cluster = await startCluster();
  await using gate = await openRequestGate(cluster.nodes[0].socket, cluster.folder, () => undefined);
  const held = new Map<string, { when: Moment['when']; reached: () => void }>();
  gate.handle = async (command) => {
    const moment = held.get(command.name);
    if (moment?.when !== 'before') await command.carryOut();
    if (moment === undefined) command.release();
    else moment.reached();
  };
  const file = (volume: string): string => `/mnt/${nameOf(volume)}/text`;
  await upgradeMidway({
    catalog: catalogOf(image.name),
    platform: cluster.platform({ overcommit: { cpu: 8, disk: 40 }, address: gate.address }),
    offer,
    machine: {},
    volume: { name: 'data', size_gb: 1, region },
    write: (volume) => `sudo tee ${file(volume)} >/dev/null`,
    read: (volume) => `sudo cat ${file(volume)}`,
    hold({ when, command }) {
      const { promise, resolve } = Promise.withResolvers<void>();
      held.set(command, { when, reached: resolve });
      return { reached: () => promise };
    },
    release: () => held.clear(),
    creates: [
      { when: 'before', command: 'PUT /1.0/instances/inst/state start' },
      { when: 'after', command: 'POST /1.0/instances' },
    ],
    attaches: [
      { when: 'after', command: 'DELETE /1.0/storage-pools/local/volumes/custom/vol' },
      { when: 'before', command: 'DELETE /1.0/storage-pools/local/volumes/custom/vol' },
      { when: 'after', command: 'POST /1.0/storage-pools/local/volumes/custom' },
    ],
    movesVolumes: true,
    deletes: [
      { when: 'before', command: 'DELETE /1.0/instances/inst' },
      { when: 'after', command: 'PUT /1.0/instances/inst/state stop' },
    ],
    contents: () => cluster.contents(),
  });
});
