import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll } from 'vitest';
import { incus } from '../../../src/drivers/incus/driver.ts';
import { incusConfigSchema } from '../../../src/drivers/incus/options.ts';
import { type DriverSuiteContext, describeDriver } from '../../../src/drivers/kit/driver.suite.ts';
import type { Catalog } from '../../../src/orchestrator/catalog/catalog.ts';
import { systemClock } from '../../../src/runtime/system.ts';
import { type Cluster, image, startCluster } from './cluster.ts';

let cluster: Cluster;
let cpus: number;

beforeAll(async () => {
  cluster = await startCluster();
  cpus = (await cluster.api.resources('n1')).cpu.total;
  await cluster.api.client.send('POST', '/1.0/cluster/groups', {
    body: { name: 'pair', members: ['n1', 'n2'] },
  });
});
afterAll(() => cluster?.[Symbol.asyncDispose]());

describeDriver('a cluster of Incus', {
  setup: async (): Promise<DriverSuiteContext> => {
    const options = incusConfigSchema.parse(
      cluster.platform({ overcommit: {}, datacenters: { fra: 'pair' } }),
    );
    const catalog: Catalog = { regions: new Map(), offers: new Map() };
    const setting = { catalog, databaseFile: undefined, env: {}, clock: systemClock };
    return {
      driver: await incus.open(options, setting as never),
      machineSpec: (ref) => ({
        ref,
        offerId: 'small',
        datacenter: 'fra',
        hostname: ref,
        image: image.name,
        vcpus: cpus,
        memoryGb: 0.25,
        rootDiskGb: 1,
        gpuCount: 0,
        gpuType: undefined,
        sshKeys: [],
        cloudInit: undefined,
        note: 'a note',
      }),
      volumeSpec: (ref) => ({ ref, datacenter: 'fra', sizeGb: 0.125, type: undefined, note: 'a note' }),
      units: 2,
      wait: (ms) => sleep(ms),
    };
  },
  teardown: async ({ driver }) => {
    let listing = await driver.list();
    while (listing.answer !== 'listed') listing = await driver.list();
    const machines = listing.items;
    for (const { ref } of machines)
      while ((await driver.destroy(ref, null)).outcome !== 'done') await sleep(100);
    const volumes = await driver.volumes?.list();
    for (const { ref } of volumes?.answer === 'listed' ? volumes.items : [])
      while ((await driver.volumes?.destroy(ref, null))?.outcome !== 'done') await sleep(100);
    await driver.close();
  },
});
