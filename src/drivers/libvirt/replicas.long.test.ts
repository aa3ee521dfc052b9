import { describe, expect, it } from 'vitest';
import type { Bench } from '../kit/checks/bench.ts';
import { readDomainXml } from './domain-xml.ts';
import { hopper } from './gpus/sysfs.fixture.ts';
import { MemoryHost } from './memory-host.fixture.ts';
import { openMemoryPlatform } from './platform.fixture.ts';

const oneGpu = { offerId: 'gpu', gpuCount: 1, gpuType: 'H100' };
const CARDS = ['0000:18:00.0', '0000:2a:00.0'];

/** Two servers of Berth on one host, with access to its stored definitions. */
function twoServers(host: MemoryHost) {
  const [one, other] = [openMemoryPlatform([host]).bench, openMemoryPlatform([host]).bench];
  const stored = async (ref: string) => readDomainXml(await host.virsh(['dumpxml', '--inactive', '--', ref]));
  return { one, other, stored };
}

/** Creates as the core does: an unfinished attempt is removed and made again under the next name. Returns the name. */
async function create(bench: Bench, ref: string): Promise<string> {
  for (let generation = 0; generation < 5; generation++) {
    const name = generation === 0 ? ref : `${ref}-g${generation}`;
    const problem = await bench.create(name, oneGpu).then(
      () => undefined,
      (error: Error) => error,
    );
    if (problem === undefined) return name;
    if (!problem.message.includes('failed with unfinished')) throw problem;
    await bench.destroy(name);
  }
  throw new Error('it is refused again and again');
}

it('two machines started at once by two servers get one GPU each [libvirt-gpus-start]', async () => {
  const { one, other, stored } = twoServers(new MemoryHost({}, hopper));
  for (const name of ['a', 'b']) {
    await one.create(one.ref(name), oneGpu);
    await one.stop(one.ref(name));
  }
  await Promise.all([one.start('suite-a'), other.start('suite-b')]);
  const given = [...(await stored('suite-a')).pciFunctions, ...(await stored('suite-b')).pciFunctions];
  expect(given.sort()).toEqual(CARDS);
});

it('two servers that each make a machine with a GPU at once both succeed [libvirt-gpus-create]', async () => {
  const { one, other, stored } = twoServers(new MemoryHost({}, hopper));
  const made = await Promise.all([create(one, 'suite-a'), create(other, 'suite-b')]);
  const given = await Promise.all(made.map(async (name) => (await stored(name)).pciFunctions));
  expect(given.flat().sort()).toEqual(CARDS);
});

describe('a machine that one server works on, while another attaches a volume', () => {
  /** A running machine, with volumes on its host. */
  async function withVolumes(...names: string[]) {
    const host = new MemoryHost();
    const servers = twoServers(host);
    const { one, other, stored } = servers;
    const machine = (await one.create(one.ref('a'))).ref;
    const volumes = other.driver.volumes;
    if (volumes === undefined) throw new Error('it has no volumes');
    for (const name of names) await one.createVolume(volumes, one.volumeRef(name));
    const disks = async () => (await stored(machine)).disks.map(({ path }) => path);
    return { ...servers, host, machine, volumes, disks };
  }

  it('keeps the volume after its next stop, whatever is written of the machine meanwhile [libvirt-attach-beside]', async () => {
    const { one, host, machine, volumes, disks } = await withVolumes('v');
    const { virsh } = host;
    let isAttached = false;
    host.virsh = async (args, call) => {
      const writes = ['define', 'metadata'].includes(args[0] ?? '');
      if (writes && !isAttached) {
        isAttached = true;
        expect(await volumes.attach('suite-v', machine, null)).toMatchObject({ outcome: 'done' });
      }
      return virsh(args, call);
    };
    await one.finish('restart', (cookie) => one.driver.restart(machine, 'once', cookie));
    expect(isAttached).toBe(true);
    expect(await disks()).toContain('/images/suite-v.volume');
    await one.stop(machine);
    expect(await disks()).toContain('/images/suite-v.volume');
  });

  it('is not made again by what a read writes of it after its end [libvirt-read-beside-end]', async () => {
    const { one, other, host, machine } = await withVolumes();
    const xml = await host.virsh(['dumpxml', '--inactive', '--', machine]);
    host.define(xml.replace('<berth:memo/>', '<berth:memo>boot</berth:memo>'));
    const { virsh } = host;
    host.virsh = async (args, call) => {
      const writes = ['define', 'metadata'].includes(args[0] ?? '');
      if (writes) {
        host.virsh = virsh;
        await other.destroy(machine);
      }
      return virsh(args, call);
    };
    await one.driver.get(machine).catch(() => undefined);
    expect([...host.domains.keys()]).toEqual([]);
    expect(await one.driver.get(machine)).toMatchObject({ answer: 'gone' });
  });
});
