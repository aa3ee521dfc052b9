import { join } from 'node:path';
import { afterAll, beforeAll, type ExpectStatic, expect, it } from 'vitest';
import { type PostgresServer, startPostgres } from '../../support/databases/postgres.ts';
import { liveThroughInterruptions } from '../interrupted-life.suite.ts';
import { Interruptions, settingOf, type Way, waysOf } from '../interruptions.ts';
import { LabReplicas } from '../lab-replicas.ts';
import { nameOf } from '../lab-server.ts';
import { catalogOf, offer, region } from './catalog.ts';
import { type Cluster, image, startCluster } from './cluster.ts';
import { openRequestGate, type RequestGate } from './request-gate.ts';

let cluster: Cluster;
let postgres: PostgresServer;
beforeAll(async () => {
  cluster = await startCluster();
  postgres = await startPostgres();
});
afterAll(async () => {
  await postgres?.[Symbol.asyncDispose]();
  await cluster?.[Symbol.asyncDispose]();
});

/** What is in the file of a volume, under whichever name it has after its moves. */
async function textOf(path: string): Promise<string> {
  const found = await cluster.api.volumes('local');
  const volume = found.find(
    ({ name, config }) => name.startsWith(nameOf(path)) && config['user.berth.ref'] === name,
  );
  const node = cluster.nodes.find(({ name }) => name === volume?.location);
  if (volume === undefined || node === undefined) throw new Error(`${path} is nowhere`);
  return node
    .run('cat', join(node.folder, 'state/storage-pools/local/custom', `default_${volume.name}`, 'text'))
    .trim();
}

async function live(way: Way, expect: ExpectStatic): Promise<Interruptions> {
  const gateOf = (index: number) =>
    openRequestGate(cluster.nodes[0].socket, cluster.folder, () => servers?.pidOf(index));
  let servers: LabReplicas | undefined;
  await using first = await gateOf(0);
  await using second = await gateOf(1);
  const replicaOf = ({ address }: RequestGate) => ({
    platform: cluster.platform({ overcommit: { cpu: 8, disk: 40 }, address }),
  });
  const setting = await settingOf(way, [replicaOf(first), replicaOf(second)], postgres.createDatabase);
  servers = new LabReplicas(catalogOf(image.name), offer, setting);
  await using opened = servers;
  const interruptions = new Interruptions(way, opened);
  for (const gate of [first, second]) gate.handle = interruptions.handle;
  await opened.start();
  const other = await opened.create('/instances', {});
  await opened.waitFor(other, 'ONLINE');
  const file = (volume: string): string => `/mnt/${nameOf(volume)}/text`;
  await liveThroughInterruptions({
    expect,
    servers: opened,
    interruptions,
    stopsToo: way.startsWith('killed'),
    machine: {},
    volume: { name: 'data', size_gb: 1, region },
    write: (volume) => `sudo tee ${file(volume)} >/dev/null`,
    read: (volume) => `sudo cat ${file(volume)}`,
    readDetached: textOf,
    other,
    contents: () => cluster.contents(),
  });
  return interruptions;
}

const ways = waysOf('incus');

// Each waits for leases most of the time.
it.concurrent.for(ways)(
  'a server that is %s each request that changes something: nothing is lost, and nothing is left [incus-interrupted]',
  async (way, { expect }) => {
    const { interrupted } = await live(way, expect);
    for (const [phase, commands] of Object.entries(interrupted))
      expect([phase, commands]).not.toEqual([phase, []]);
  },
);

it('nothing is left of all of them', () => expect.poll(() => cluster.contents()).toEqual([]));
