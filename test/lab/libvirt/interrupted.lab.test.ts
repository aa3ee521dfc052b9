import { afterAll, beforeAll, type ExpectStatic, it } from 'vitest';
import { type PostgresServer, startPostgres } from '../../support/databases/postgres.ts';
import { liveThroughInterruptions } from '../interrupted-life.suite.ts';
import { Interruptions, settingOf, type Way, waysOf } from '../interruptions.ts';
import { LabReplicas } from '../lab-replicas.ts';
import { nameOf } from '../lab-server.ts';
import { IMAGES, type LabHost, openLabHost } from './lab-host.ts';
import { catalogOf, findDisk, offer, platformOf, region } from './platform.ts';
import { openShellGate } from './shell-gate.ts';

let postgres: PostgresServer;
beforeAll(async () => {
  postgres = await startPostgres();
});
afterAll(() => postgres?.[Symbol.asyncDispose]());

const idOf = (path: string): string => path.split('/').at(-1) ?? '';
const find = (volume: string): string => findDisk(idOf(volume));

async function live(way: Way, host: LabHost, expect: ExpectStatic): Promise<Interruptions> {
  using gate = openShellGate();
  const replica = { platform: platformOf([host]), env: gate.env };
  const setting = await settingOf(way, [replica, replica], postgres.createDatabase);
  await using servers = new LabReplicas(catalogOf(2), offer, setting);
  const interruptions = new Interruptions(way, servers);
  gate.handle = interruptions.handle;
  await servers.start();
  await liveThroughInterruptions({
    expect,
    servers,
    interruptions,
    stopsToo: way.startsWith('killed'),
    machine: { operating_system_image: 'tiny-root' },
    volume: { name: 'data', size_gb: 1, region },
    write: (volume) => `{ ${find(volume)}; dd of=$d bs=512 conv=sync; }`,
    read: (volume) => `${find(volume)}; head -n 1 $d`,
    readDetached: (volume) => {
      const [from, to] = [`${IMAGES}/${nameOf(volume)}.volume`, '/run/first-block'];
      host.run('qemu-img', 'dd', '-f', 'qcow2', '-O', 'raw', 'bs=512', 'count=1', `if=${from}`, `of=${to}`);
      return host.run('head', '-n', '1', to).trim();
    },
    contents: () => host.contents(),
  });
  return interruptions;
}

const ways = waysOf('libvirt');
const hosts = new Map<Way, LabHost>();
beforeAll(async () => {
  for (const [index, way] of ways.entries()) hosts.set(way, await openLabHost(1 + index));
});
afterAll(async () => {
  for (const host of hosts.values()) await host.close();
});

// Each waits for leases most of the time.
it.concurrent.for(ways)(
  'a server that is %s each command that changes something: nothing is lost, and nothing is left [libvirt-interrupted]',
  async (way, { expect }) => {
    const host = hosts.get(way);
    if (host === undefined) throw new Error(`there is no host for ${way}`);
    const { interrupted, lateAndDone } = await live(way, host, expect);
    for (const [phase, commands] of Object.entries(interrupted))
      expect([phase, commands]).not.toEqual([phase, []]);
    // The host had seen a later claim.
    expect(lateAndDone).toEqual([]);
    await expect.poll(() => host.contents()).toEqual([]);
  },
);
