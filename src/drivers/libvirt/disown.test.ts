import { expect, it } from 'vitest';
import { anOrder } from '../../../test/support/rows/orchestrator-rows.ts';
import { diagnoseMachines } from './diagnosis/diagnose.ts';
import { listDomains } from './hosts/domains.ts';
import { MemoryHost } from './memory-host.fixture.ts';
import { aMachine, openMemoryPlatform } from './platform.fixture.ts';

const REF = 'berth-a';
const FILES = ['debian.qcow2', `${REF}.qcow2`, `${REF}.seed`];
const DONE = { outcome: 'done', value: null };

/** A stopped machine that was released. */
async function released(hosts = [new MemoryHost()]) {
  const machine = await aMachine(hosts);
  await machine.bench.stop(REF);
  expect(await machine.driver.disown?.(REF, null)).toEqual(DONE);
  return machine;
}

const usedOf = async (bench: Awaited<ReturnType<typeof aMachine>>['bench']) => {
  const inventory = await bench.driver.inventory?.();
  if (inventory?.answer !== 'counted') throw new Error('there is no count');
  const [host] = inventory.hosts ?? [];
  return { vcpus: host?.vcpus?.taken, memoryGb: host?.memoryGb?.taken, counted: inventory.counted };
};

it('a disowned machine is gone, and is neither a copy nor a leftover', async () => {
  const { driver, host, definition, written } = await released();
  expect(await driver.get(REF)).toMatchObject({ answer: 'gone' });
  expect(await driver.list()).toMatchObject({ items: [], copies: [], leftovers: [] });
  expect(await driver.disown?.(REF, null)).toEqual(DONE);
  expect(await definition()).toMatch(/<berth:released [^>]*ref=.berth-a. [^>]*at=.\d+/);
  expect(written()).toBe('what the tenant wrote');
  expect(await diagnoseMachines([host])).toEqual([]);
});

it('a stop, start or destroy of a disowned machine changes nothing', async () => {
  const { driver, host, written } = await released();
  const gone = { outcome: 'failed', code: 'gone', sideEffect: 'none' };
  expect(await driver.stop(REF, null)).toMatchObject(gone);
  expect(await driver.start(REF, null)).toMatchObject(gone);
  expect(await driver.destroy(REF, null, anOrder)).toEqual(DONE);
  expect([...host.domains.keys()]).toEqual([REF]);
  expect([...host.files.keys()]).toEqual(FILES);
  expect(written()).toBe('what the tenant wrote');
});

it('a disowned machine keeps its disk when it is renamed', async () => {
  const { driver, host } = await released();
  await host.virsh(['domrename', REF, 'theirs']);
  expect(await driver.get(REF)).toMatchObject({ answer: 'gone' });
  expect(await driver.destroy(REF, null, anOrder)).toEqual(DONE);
  expect(await driver.list()).toMatchObject({ items: [], copies: [], leftovers: [] });
  expect([...host.files.keys()]).toEqual(FILES);
});

it.each(['running', 'paused'])(
  'a machine that is %s is not disowned: it must be stopped first',
  async (power) => {
    const { driver, host, definition } = await aMachine();
    const domain = host.domains.get(REF);
    if (power === 'paused' && domain !== undefined) domain.pause = 'user';
    const before = await definition();
    expect(await driver.disown?.(REF, null)).toEqual({
      outcome: 'failed',
      code: 'conflict',
      sideEffect: 'none',
      detail: `${REF} is ${power} on kvm-1: stop it first`,
    });
    expect(await definition()).toBe(before);
  },
);

it('a machine with a managed save is not disowned: the save contains the mark', async () => {
  const { driver, bench, host } = await aMachine();
  await bench.stop(REF);
  const domain = host.domains.get(REF);
  if (domain !== undefined) domain.isSaved = true;
  expect(await driver.disown?.(REF, null)).toMatchObject({
    code: 'conflict',
    detail: expect.stringContaining('virsh managedsave-remove berth-a'),
  });
});

it('a disowned machine counts as a foreign domain: its disk always, its size while it runs', async () => {
  const { bench, host } = await released();
  expect(await usedOf(bench)).toEqual({ vcpus: 0, memoryGb: 0, counted: [] });
  await host.virsh(['start', '--', REF]);
  expect(await usedOf(bench)).toEqual({ vcpus: 4, memoryGb: 8, counted: [] });
  expect(await bench.driver.list()).toMatchObject({ items: [], copies: [] });
});

it('the address of a disowned machine stays reserved until its domain is gone', async () => {
  const { bench, host } = await released();
  const portOf = async (ref: string) => (await bench.create(ref)).endpoint?.sshPort;
  const [first = 0, second] = [await portOf('berth-b'), await portOf('berth-c')];
  const [{ release } = { release: undefined }] = (await listDomains(host)).filter(({ name }) => name === REF);
  expect([first, second]).not.toContain(release?.hostPort);
  await host.virsh(['undefine', REF]);
  expect(await portOf('berth-d')).toBe(release?.hostPort);
});

it('a volume of a disowned machine is kept and detached', async () => {
  const { driver, bench, host, volumes } = await aMachine();
  await volumes.create({ ...bench.context.volumeSpec('berth-v'), host: host.name }, null);
  expect(await volumes.attach('berth-v', REF, null)).toMatchObject({ outcome: 'done' });
  await bench.stop(REF);
  expect(await driver.disown?.(REF, null)).toEqual(DONE);
  expect(await volumes.get('berth-v')).toMatchObject({ value: { attachedTo: [] } });
  const [domain] = await listDomains(host, 'stored');
  expect(domain?.disks.map(({ target }) => target)).toEqual(['vda', 'vdb']);
  expect(domain?.release?.ref).toBe(REF);
});

it('a late start does not start a machine after its disown has begun', async () => {
  const { driver, bench, host } = await aMachine();
  await bench.stop(REF);
  const early = bench.call();
  // The start was sent before, and arrives between the reads and the writes of the release.
  const { virsh } = host;
  let isSent = false;
  host.virsh = async (args, call) => {
    if (args[0] === 'hostname' && call?.limits !== undefined && !isSent) {
      isSent = true;
      await virsh(['start', '--', REF]);
    }
    return virsh(args, call);
  };
  expect(await driver.disown?.(REF, null, bench.call())).toMatchObject({ code: 'conflict' });
  expect(await driver.start(REF, null, early)).toMatchObject({ outcome: 'failed', code: 'transient' });
  expect(await driver.get(REF)).toMatchObject({ answer: 'observed' });
});

it('a machine on two hosts is disowned on both', async () => {
  const hosts = [new MemoryHost(), new MemoryHost({ name: 'kvm-2', public_ip: '192.0.2.2' })];
  const { driver, bench, definition } = await aMachine(hosts);
  await bench.stop(REF);
  hosts[1]?.define(await definition());
  expect(await driver.disown?.(REF, null)).toEqual(DONE);
  expect(await driver.get(REF)).toMatchObject({ answer: 'gone' });
  for (const host of hosts) expect((await listDomains(host))[0]?.release?.ref).toBe(REF);
});

it('a disown is not done while a host that may have the machine does not answer, or when its domain is lost', async () => {
  const hosts = [new MemoryHost(), new MemoryHost({ name: 'kvm-2', public_ip: '192.0.2.2' })] as const;
  const { driver, bench } = await aMachine(hosts);
  await bench.stop(REF);
  hosts[0].isAway = true;
  expect(await driver.disown?.(REF, null)).toMatchObject({ code: 'transient' });
  hosts[0].isAway = false;
  await hosts[0].virsh(['undefine', REF]);
  expect(await driver.disown?.(REF, null)).toMatchObject({
    code: 'conflict',
    detail: expect.stringContaining(`${REF}.qcow2`),
  });
});

it('a create with the name of a disowned machine does not define it again, even if its files are lost', async () => {
  const { bench, host, definition } = await released();
  host.files.delete(`${REF}.qcow2`);
  host.files.delete(`${REF}.seed`);
  const before = await definition();
  expect(await bench.driver.create(bench.spec(REF, { host: host.name }), null)).toEqual({
    outcome: 'failed',
    code: 'already_exists',
    sideEffect: 'none',
    detail: `kvm-1 has ${REF}, which was disowned: it is not Berth's`,
  });
  expect(await definition()).toBe(before);
});

it('a server that lost its claim disowns nothing', async () => {
  const { driver, bench, host } = await aMachine();
  await bench.stop(REF);
  const early = bench.call();
  expect(await driver.start(REF, null, bench.call())).toMatchObject({ outcome: 'pending' });
  expect(await openMemoryPlatform([host]).bench.context.driver.disown?.(REF, null, early)).toMatchObject({
    outcome: 'failed',
    code: 'transient',
  });
  expect(await driver.get(REF)).toMatchObject({ answer: 'observed' });
});
