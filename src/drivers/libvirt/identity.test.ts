import { describe, expect, it } from 'vitest';
import { anOrder } from '../../../test/support/rows/orchestrator-rows.ts';
import { diagnoseMachines } from './diagnosis/diagnose.ts';
import { MemoryHost } from './memory-host.fixture.ts';
import { aMachine, openMemoryPlatform } from './platform.fixture.ts';
import { descend, textOf } from './xml.ts';

const REF = 'berth-a';
const DISK = `${REF}.qcow2`;
const SEED = `${REF}.seed`;

const ANOTHER = '4b2f7f5e-7b11-4d5c-9f0a-2f6f0a3b6f10';
const withUuid = (xml: string): string => xml.replace(/<uuid>.*<\/uuid>/, `<uuid>${ANOTHER}</uuid>`);

describe('a renamed machine', () => {
  async function renamed() {
    const machine = await aMachine();
    await machine.bench.stop(REF);
    await machine.host.virsh(['domrename', REF, 'web-1']);
    return machine;
  }

  it('is found by its UUID, and shown with its current name', async () => {
    const { driver, bench, written } = await renamed();
    const value = { ref: REF, power: 'stopped', renamedTo: 'web-1' };
    expect(await driver.get(REF)).toMatchObject({ answer: 'observed', value });
    expect(await driver.list()).toMatchObject({ items: [value], copies: [], leftovers: [] });
    expect(await bench.start(REF)).toMatchObject({ power: 'running', renamedTo: 'web-1' });
    await bench.finish('restart', (cookie) => driver.restart(REF, 'once', cookie));
    expect(await bench.stop(REF)).toMatchObject({ power: 'stopped' });
    expect(written()).toBe('what the tenant wrote');
  });

  it('takes volumes, and is removed with its disk and seed by a delete', async () => {
    const { host, driver, volumes, bench } = await renamed();
    await volumes.create({ ...bench.context.volumeSpec('berth-v'), host: host.name }, null);
    expect(await volumes.attach('berth-v', REF, null)).toMatchObject({ outcome: 'done' });
    expect(await volumes.get('berth-v')).toMatchObject({ value: { attachedTo: [REF], host: host.name } });
    await bench.destroy(REF);
    expect(await driver.get(REF)).toMatchObject({ answer: 'gone' });
    expect(host.domains.size).toBe(0);
    expect([...host.files.keys()]).toEqual(['debian.qcow2', 'berth-v.mark', 'berth-v.volume']);
  });

  it('is removed with its disk if that was renamed too', async () => {
    const { host, bench } = await renamed();
    const disk = host.files.get(DISK);
    host.files.delete(DISK);
    if (disk !== undefined) host.files.set('web-1.qcow2', disk);
    host.define((await host.virsh(['dumpxml', '--', 'web-1'])).replace(DISK, 'web-1.qcow2'));
    await bench.destroy(REF);
    expect([...host.files.keys()]).toEqual(['debian.qcow2']);
  });

  it('is found by berth doctor', async () => {
    const { host } = await renamed();
    expect(await diagnoseMachines([host])).toMatchObject([
      { subject: `machine ${REF} on host kvm-1`, finding: 'it was renamed to web-1' },
    ]);
  });
});

describe('a copy of a machine, as virt-clone makes it', () => {
  async function cloned() {
    const machine = await aMachine();
    const { host, definition } = machine;
    host.files.set(`${REF}.copy`, { content: Buffer.from('its own'), bytes: 1 });
    const xml = withUuid(await definition());
    host.define(xml.replace(`<name>${REF}`, `<name>${REF}-clone`).replace(DISK, `${REF}.copy`));
    return machine;
  }

  it('is reported, and is not a machine', async () => {
    const { host, driver } = await cloned();
    await host.virsh(['start', `${REF}-clone`]);
    expect(await driver.list()).toMatchObject({
      items: [{ ref: REF, power: 'running' }],
      copies: [{ ref: REF, name: `${REF}-clone`, host: 'kvm-1' }],
    });
    expect(await diagnoseMachines([host])).toMatchObject([
      { subject: `domain ${REF}-clone on host kvm-1`, finding: `it is a copy of the machine ${REF}` },
    ]);
  });

  it('is left alone whatever happens to the machine, even if its disk has the same name', async () => {
    const { host, bench, driver } = await cloned();
    await host.virsh(['start', `${REF}-clone`]);
    await bench.stop(REF);
    await bench.destroy(REF);
    expect(await driver.get(REF)).toMatchObject({ answer: 'gone' });
    expect(host.domains.get(`${REF}-clone`)?.live).toBeDefined();
    expect([...host.files.keys()]).toEqual(['debian.qcow2', `${REF}.copy`]);
    expect(await driver.list()).toMatchObject({ items: [], copies: [{ ref: REF }], leftovers: [] });
  });

  it('makes the delete of the machine wait if it uses the machine’s disk', async () => {
    const { host, driver, definition, written } = await aMachine();
    const xml = withUuid(await definition());
    await host.virsh(['destroy', REF]);
    await host.virsh(['undefine', REF]);
    host.define(xml);
    expect(await driver.get(REF)).toMatchObject({
      answer: 'unknown',
      reason: expect.stringContaining(
        `${DISK}, ${SEED}, but not its domain: ${REF}, a copy of the machine, has its disk`,
      ),
    });
    expect(await driver.destroy(REF, null, anOrder)).toMatchObject({ outcome: 'failed', code: 'conflict' });
    expect(written()).toBe('what the tenant wrote');
    expect(await driver.stop(REF, null)).toMatchObject({ outcome: 'failed', code: 'gone' });
    expect(host.domains.size).toBe(1);
  });
});

describe('a machine whose domain was undefined by hand', () => {
  async function undefinedMachine() {
    const machine = await aMachine();
    const xml = await machine.definition();
    await machine.bench.stop(REF);
    await machine.host.virsh(['undefine', REF]);
    return { ...machine, xml };
  }

  it('is not gone: its disk and its seed are reported', async () => {
    const { driver, written, host } = await undefinedMachine();
    expect(await driver.get(REF)).toEqual({
      answer: 'unknown',
      reason: expect.stringMatching(
        /^kvm-1 has berth-a.qcow2, berth-a.seed, but not its domain: define it again .* or delete the instance/,
      ),
    });
    expect(await driver.list()).toMatchObject({
      items: [],
      leftovers: [{ ref: REF, host: host.name, detail: `${DISK}, ${SEED}` }],
    });
    expect(written()).toBe('what the tenant wrote');
  });

  it('is the same machine once it is defined again', async () => {
    const { driver, host, xml } = await undefinedMachine();
    host.define(xml);
    expect(await driver.get(REF)).toMatchObject({ answer: 'observed', value: { power: 'stopped' } });
    expect(await driver.list()).toMatchObject({ items: [{ ref: REF }], leftovers: [] });
  });

  it('is not created again over its disk', async () => {
    const { bench, driver, host, written } = await undefinedMachine();
    expect(await driver.create(bench.spec(REF, { host: host.name }), null)).toMatchObject({
      outcome: 'failed',
      code: 'unfinished',
      sideEffect: 'certain',
    });
    expect(written()).toBe('what the tenant wrote');
    expect(host.domains.size).toBe(0);
    // The next attempt has another name. An order with the first name removes the first.
    await bench.create(`${REF}-g1`, { host: host.name });
    await bench.destroy(REF);
    expect([...host.files.keys()]).toEqual(['debian.qcow2', `${REF}-g1.qcow2`, `${REF}-g1.seed`]);
  });

  it('is not created again if an earlier call had defined it: it may be on a silent host [libvirt-moved-while-made]', async () => {
    const { bench, driver, host } = await aMachine();
    const spec = bench.spec(`${REF}-g1`, { host: host.name });
    const step = await driver.create(spec, null);
    if (step.outcome !== 'pending') throw new Error(`its create is ${step.outcome}`);
    host.domains.delete(spec.ref);
    expect(await driver.create(spec, step.cookie)).toMatchObject({ outcome: 'failed', code: 'unfinished' });
    expect([...host.domains.keys()]).toEqual([REF]);
  });

  it('is gone once its disk and its seed are gone, and a delete removes its console log', async () => {
    const { driver, host } = await undefinedMachine();
    host.files.delete(DISK);
    host.files.delete(SEED);
    expect(await driver.get(REF)).toMatchObject({ answer: 'gone' });
    host.files.set(`${REF}.console`, { content: Buffer.alloc(0), bytes: 1 });
    expect(await driver.get(REF)).toMatchObject({ answer: 'gone' });
    await driver.destroy(REF, null, anOrder);
    expect([...host.files.keys()]).toEqual(['debian.qcow2']);
  });
});

it('a create repeated while a start reclaims room does not undefine the machine', async () => {
  const { host, bench, driver, written } = await aMachine();
  await bench.stop(REF);
  await bench.create('berth-b', { vcpus: 124 });
  expect(await driver.start(REF, null)).toMatchObject({ outcome: 'pending' });
  expect(await driver.create(bench.spec(REF), host.name)).toMatchObject({ outcome: 'pending' });
  expect(await driver.get(REF)).toMatchObject({ value: { power: 'stopped' } });
  expect(written()).toBe('what the tenant wrote');
});

it('files of a running create are not leftovers, nor are images with a name like Berth’s', async () => {
  const host = new MemoryHost();
  const images = { 'debian-12': { volume: 'berth-debian.qcow2', user: 'debian' } };
  const { bench } = openMemoryPlatform([host], undefined, { images });
  host.files.set('berth-debian.qcow2', { content: Buffer.alloc(0), bytes: 1 });
  let found: unknown;
  const { virsh } = host;
  host.virsh = async (args, call) => {
    const answer = await virsh(args, call);
    if (args[0] === 'vol-upload') found = await bench.driver.list();
    return answer;
  };
  await bench.create(REF);
  expect(found).toMatchObject({ items: [{ ref: REF, power: 'building' }], leftovers: [] });
});

describe('a machine that two hosts have', () => {
  async function onTwo() {
    const hosts = [new MemoryHost(), new MemoryHost({ name: 'kvm-2', public_ip: '192.0.2.2' })] as const;
    const machine = await aMachine(hosts);
    const [from, to] = hosts;
    to.define(await machine.definition());
    for (const name of [DISK, SEED]) to.files.set(name, { content: Buffer.alloc(0), bytes: 1 });
    return { ...machine, from, to };
  }

  it('is not started while it is unknown which one has its data', async () => {
    const { bench, driver, from, to } = await onTwo();
    await from.virsh(['destroy', REF]);
    expect(await driver.start(REF, null)).toMatchObject({
      outcome: 'failed',
      code: 'conflict',
      detail: expect.stringContaining('undefine the one with the older disk'),
    });
    await to.virsh(['undefine', REF]);
    expect(await bench.start(REF)).toMatchObject({ host: 'kvm-1' });
  });

  it('is the one that has run, not the one that was only defined', async () => {
    const { driver, from, to, definition } = await onTwo();
    to.define((await definition()).replace('<berth:memo/>', '<berth:memo>create</berth:memo>'));
    await from.virsh(['destroy', REF]);
    expect(await driver.get(REF)).toMatchObject({ value: { power: 'stopped', host: 'kvm-1' } });
  });

  it('leaves no disk on its former host once it is deleted', async () => {
    const { bench, from, to } = await onTwo();
    await from.virsh(['destroy', REF]);
    await from.virsh(['undefine', REF]);
    await to.virsh(['start', REF]);
    expect(await bench.driver.list()).toMatchObject({ items: [{ ref: REF, host: 'kvm-2' }], leftovers: [] });
    await bench.destroy(REF);
    expect([...from.files.keys(), ...to.files.keys()]).toEqual(['debian.qcow2', 'debian.qcow2']);
  });
});

it('a tenant cannot see from a machine or a volume which attempt it is', async () => {
  const { host, volumes, bench } = await aMachine([new MemoryHost()], 'berth-a-g2');
  await volumes.create({ ...bench.context.volumeSpec('berth-v-g1'), host: host.name }, null);
  expect(await volumes.attach('berth-v-g1', 'berth-a-g2', null)).toMatchObject({ outcome: 'done' });
  const { definition } = host.domains.get('berth-a-g2') ?? {};
  const disks = (descend(definition, 'devices')?.children ?? []).flatMap((one) =>
    typeof one !== 'string' && one.name === 'disk' ? [textOf(descend(one, 'serial'))] : [],
  );
  expect(disks).toEqual(['root', 'seed', 'v']);
  const seed = host.files.get('berth-a-g2.seed')?.content.toString('latin1') ?? '';
  expect(seed).toContain('"instance-id":"a"');
});
