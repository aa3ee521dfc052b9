import { expect, it } from 'vitest';
import { anOrder } from '../../../test/support/rows/orchestrator-rows.ts';
import type { Call, MachineSpec } from '../../orchestrator/model/platform-driver.ts';
import type { Bench } from '../kit/checks/bench.ts';
import { readDomainXml } from './domain-xml.ts';
import { MemoryHost } from './memory-host.fixture.ts';
import { openMemoryPlatform } from './platform.fixture.ts';

type Virsh = MemoryHost['virsh'];

/** The claims of the first server, and of its successor. */
const first = aCall(1);
const second = aCall(2);

function aCall(fence: number): Call {
  return { deadline: Number.MAX_SAFE_INTEGER, fence, signal: new AbortController().signal };
}

/** Two servers on the same hosts. The first server's commands can be delayed. */
function twoServers(hosts: readonly MemoryHost[]) {
  let hold: (args: readonly string[], name: string) => Promise<void> = async () => undefined;
  const held = hosts.map((host) => {
    const own = Object.create(host) as MemoryHost;
    const virsh: Virsh = async (args, call) => {
      await hold(args, host.name);
      return host.virsh(args, call);
    };
    Object.defineProperty(own, 'virsh', { value: virsh });
    return own;
  });
  const slow = openMemoryPlatform(held).bench;
  const other = openMemoryPlatform(hosts).bench;
  return {
    slow: serverOf(slow, first),
    other: serverOf(other, second),
    /** Pauses the first server before its next command that `matches`. */
    holdAt(matches: (line: string, host: string) => boolean) {
      const reached = Promise.withResolvers<void>();
      const awake = Promise.withResolvers<void>();
      hold = async (args, name) => {
        if (!matches(args.join(' '), name)) return;
        hold = async () => undefined;
        reached.resolve();
        await awake.promise;
      };
      return { reached: reached.promise, wake: awake.resolve };
    },
  };
}

/** A server that has the claim of `call`. */
function serverOf(bench: Bench, call: Call) {
  const { driver, context } = bench;
  const { volumes } = driver;
  if (volumes === undefined) throw new Error('it has no volumes');
  return {
    driver,
    volumes,
    spec: context.machineSpec,
    volumeSpec: context.volumeSpec,
    create: (ref: string, more: Partial<MachineSpec>) =>
      bench.finish('create', (cookie) =>
        driver.create({ ...context.machineSpec(ref), ...more }, cookie, call),
      ),
    begin: (ref: string, more: Partial<MachineSpec>) =>
      driver.create({ ...context.machineSpec(ref), ...more }, null, call),
    stop: (ref: string) => bench.finish('stop', (cookie) => driver.stop(ref, cookie, call)),
    start: (ref: string) => bench.finish('start', (cookie) => driver.start(ref, cookie, call)),
    destroy: (ref: string) => bench.finish('destroy', (cookie) => driver.destroy(ref, cookie, anOrder, call)),
    createVolume: (ref: string, host: string) =>
      volumes.create({ ...context.volumeSpec(ref), host }, null, call),
    destroyVolume: (ref: string) => volumes.destroy(ref, null, anOrder, call),
    attach: (ref: string, machine: string) => volumes.attach(ref, machine, null, call),
  };
}

it.each([
  'vol-create-as berth suite-a.qcow2',
  'vol-create-as berth suite-a.seed',
  'vol-upload --pool berth suite-a.seed',
])(
  'L1: a server that slept past its lease before %s does not change what the machine runs from',
  async (line) => {
    const host = new MemoryHost();
    const { slow, other, holdAt } = twoServers([host]);
    const { reached, wake } = holdAt((sent) => sent.startsWith(line));
    const sleeping = slow.create('suite-a', { host: 'kvm-1' }).catch(() => undefined);
    await reached;
    // The lease expires, and another server continues the create. The machine runs, and its tenant writes.
    await other.create('suite-a', { host: 'kvm-1' });
    const disk = host.files.get('suite-a.qcow2');
    if (disk === undefined) throw new Error('it has no disk');
    disk.content = Buffer.from('what the tenant wrote');
    const key = readDomainXml(await host.virsh(['dumpxml', '--inactive', '--', 'suite-a'])).mark
      ?.hostKeyFingerprint;
    const seed = host.files.get('suite-a.seed')?.content;
    wake();
    await sleeping;
    const after = readDomainXml(await host.virsh(['dumpxml', '--inactive', '--', 'suite-a'])).mark
      ?.hostKeyFingerprint;
    expect.soft(host.files.get('suite-a.qcow2')?.content.toString()).toBe('what the tenant wrote');
    expect.soft(after).toBe(key);
    expect.soft(host.files.get('suite-a.seed')?.content).toEqual(seed);
  },
);

it('L2: a server that slept past its lease leaves no disk or seed, with tenant secrets, of a machine that was deleted in the meantime', async () => {
  const host = new MemoryHost();
  const { slow, other, holdAt } = twoServers([host]);
  const { reached, wake } = holdAt(
    (line) => line.startsWith('vol-create-as') && line.includes('suite-a.seed'),
  );
  const sleeping = slow.create('suite-a', { host: 'kvm-1' }).catch(() => undefined);
  await reached;
  await other.destroy('suite-a');
  expect(await other.driver.get('suite-a')).toMatchObject({ answer: 'gone' });
  wake();
  await sleeping;
  // Berth no longer sees these files, so it would never remove them.
  expect(await other.driver.list()).toMatchObject({ items: [] });
  expect([...host.files.keys()].filter((name) => name.startsWith('suite-a'))).toEqual([]);
});

it('L3: a volume that was deleted while another server created it leaves no disk', async () => {
  const host = new MemoryHost();
  const { slow, other, holdAt } = twoServers([host]);
  const { reached, wake } = holdAt(
    (line) => line.startsWith('vol-create-as') && line.includes('suite-v.volume'),
  );
  const sleeping = slow.createVolume('suite-v', 'kvm-1').catch(() => undefined);
  await reached;
  expect(await other.destroyVolume('suite-v')).toMatchObject({ outcome: 'done' });
  expect(await other.volumes.get('suite-v')).toMatchObject({ answer: 'gone' });
  wake();
  await sleeping;
  expect(await other.volumes.list()).toMatchObject({ items: [] });
  expect([...host.files.keys()].filter((name) => name.startsWith('suite-v'))).toEqual([]);
});

it('L3: a volume that was deleted before its create made anything leaves no disk', async () => {
  const host = new MemoryHost();
  const { slow, other, holdAt } = twoServers([host]);
  const { reached, wake } = holdAt(
    (line) => line.startsWith('vol-create-as') && line.includes('suite-v.mark'),
  );
  const sleeping = slow.createVolume('suite-v', 'kvm-1').catch(() => undefined);
  await reached;
  expect(await other.destroyVolume('suite-v')).toMatchObject({ outcome: 'done' });
  wake();
  expect(await sleeping).toMatchObject({ outcome: 'failed', code: 'transient', sideEffect: 'none' });
  expect([...host.files.keys()].filter((name) => name.startsWith('suite-v'))).toEqual([]);
});

it('a create uses complete leftovers of an interrupted one, and makes incomplete ones under another name', async () => {
  const host = new MemoryHost();
  const { slow, other, holdAt } = twoServers([host]);
  const { reached, wake } = holdAt((line) => line.startsWith('vol-upload'));
  const sleeping = slow.create('suite-a', { host: 'kvm-1' }).catch(() => undefined);
  await reached;
  const disk = host.files.get('suite-a.qcow2');
  if (disk === undefined) throw new Error('it has no disk');
  const whole = disk.bytes;
  disk.bytes = 0;
  await expect(other.create('suite-a', { host: 'kvm-1' })).rejects.toThrow(
    'suite-a.qcow2 of an earlier call, which is incomplete',
  );
  disk.bytes = whole;
  await other.create('suite-a', { host: 'kvm-1' });
  expect(host.files.get('suite-a.qcow2')).toBe(disk);
  wake();
  await sleeping;
});

it.each([true, false])(
  'L4: a late create of a volume on one host does not hide the data on another (the late one is removed first: %s)',
  async (isRemoved) => {
    const hosts = [new MemoryHost({ name: 'a' }), new MemoryHost({ name: 'b' })];
    const { slow, other, holdAt } = twoServers(hosts);
    const { reached, wake } = holdAt(
      (line) => line.startsWith('vol-create-as') && line.includes('suite-v.mark'),
    );
    const sleeping = slow.createVolume('suite-v', 'a').catch(() => undefined);
    await reached;
    if (isRemoved) expect(await other.destroyVolume('suite-v')).toMatchObject({ outcome: 'done' });
    // The next attempt has another name and the other host.
    expect(await other.createVolume('suite-v-g1', 'b')).toMatchObject({ outcome: 'done' });
    expect(hosts[1]?.files.has('suite-v-g1.volume')).toBe(true);
    wake();
    await sleeping;
    const { ref } = await other.create('suite-m', { host: 'b' });
    const on = hosts.find((host) => host.domains.has(ref))?.name;
    const attached = await other.attach('suite-v-g1', ref);
    expect({ on, attached }).toMatchObject({ on: 'b', attached: { outcome: 'done' } });
    expect(await other.volumes.get('suite-v-g1')).toMatchObject({ value: { host: 'b' } });
    await other.destroyVolume('suite-v');
    const files = hosts.flatMap((host) => [...host.files.keys()].map((name) => `${host.name}/${name}`));
    expect(files.filter((name) => name.endsWith('.volume'))).toEqual(['b/suite-v-g1.volume']);
  },
);

it.each([true, false])(
  'L5: a late create on one host does not replace the machine, with its data, on another (the late one is removed first: %s)',
  async (isRemoved) => {
    const hosts = [new MemoryHost({ name: 'a' }), new MemoryHost({ name: 'b' })];
    const { slow, other, holdAt } = twoServers(hosts);
    const { reached, wake } = holdAt((line, host) => line.startsWith('define') && host === 'a');
    // The slow server makes a single call, and loses its lease afterwards.
    const sleeping = slow.begin('suite-m', { host: 'a' }).catch(() => undefined);
    await reached;
    if (isRemoved) await other.destroy('suite-m');
    // Another server has the lease. An operator has cordoned `a`, so the next attempt is made on `b`; its tenant
    // writes and stops it.
    await other.create('suite-m-g1', { host: 'b', avoidHosts: ['a'] });
    await other.stop('suite-m-g1');
    const stopped = { answer: 'observed', value: { power: 'stopped', host: 'b' } };
    expect(await other.driver.get('suite-m-g1')).toMatchObject(stopped);
    wake();
    expect(await sleeping).toMatchObject({ outcome: isRemoved ? 'failed' : 'pending' });
    expect.soft(await other.driver.get('suite-m-g1')).toMatchObject(stopped);
    const started = await other.start('suite-m-g1').then(
      (machine) => machine.host,
      (error: Error) => error.message,
    );
    expect.soft(started).toBe('b');
    await other.destroy('suite-m');
    expect.soft(hosts.map(({ domains }) => [...domains.keys()])).toEqual([[], ['suite-m-g1']]);
  },
);
