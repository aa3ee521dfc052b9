import { describe, expect, it } from 'vitest';
import { anOrder } from '../../orchestrator/model/destroy-order.fixture.ts';
import type { Call } from '../../orchestrator/model/platform-driver.ts';
import { diagnoseMachines } from './diagnosis/machine-checks.ts';
import { MemoryHost, openMemoryPlatform } from './memory-host.fixture.ts';
import { descend, textOf } from './xml.ts';

const REF = 'berth-a';
const DISK = `${REF}.qcow2`;
const SEED = `${REF}.seed`;

/** A machine, whose tenant has written, and what an operator does to it on its host. */
async function aMachine(hosts: readonly MemoryHost[] = [new MemoryHost()], ref = REF) {
  const [host] = hosts as [MemoryHost];
  const { bench } = openMemoryPlatform(hosts);
  await bench.create(ref, { host: host.name });
  const disk = host.files.get(`${ref}.qcow2`);
  if (disk === undefined) throw new Error('it has no disk');
  disk.content = Buffer.from('what the tenant wrote');
  const { driver } = bench;
  const { volumes } = driver;
  if (volumes === undefined) throw new Error('it has no volumes');
  const definition = () => host.virsh(['dumpxml', '--inactive', '--', ref]);
  const written = () => host.files.get(`${ref}.qcow2`)?.content.toString();
  return { host, bench, driver, volumes, definition, written };
}

const ANOTHER = '4b2f7f5e-7b11-4d5c-9f0a-2f6f0a3b6f10';
const withUuid = (xml: string): string => xml.replace(/<uuid>.*<\/uuid>/, `<uuid>${ANOTHER}</uuid>`);

describe('a machine that somebody renamed', () => {
  async function renamed() {
    const machine = await aMachine();
    await machine.bench.stop(REF);
    await machine.host.virsh(['domrename', REF, 'web-1']);
    return machine;
  }

  it('is followed, and shown with the name that it has now', async () => {
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

  it('is removed with its disk where that was renamed too', async () => {
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
      { subject: `machine ${REF} on host kvm-1`, finding: 'it is called web-1' },
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

  it('is told of, and is no machine', async () => {
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

  it('is left as it is by whatever becomes of the machine, with a disk that is called after it', async () => {
    const { host, bench, driver } = await cloned();
    await host.virsh(['start', `${REF}-clone`]);
    await bench.stop(REF);
    await bench.destroy(REF);
    expect(await driver.get(REF)).toMatchObject({ answer: 'gone' });
    expect(host.domains.get(`${REF}-clone`)?.live).toBeDefined();
    expect([...host.files.keys()]).toEqual(['debian.qcow2', `${REF}.copy`]);
    expect(await driver.list()).toMatchObject({ items: [], copies: [{ ref: REF }], leftovers: [] });
  });

  it('keeps the disk of the machine where it has that, whose delete waits', async () => {
    const { host, driver, definition, written } = await aMachine();
    const xml = withUuid(await definition());
    await host.virsh(['destroy', REF]);
    await host.virsh(['undefine', REF]);
    host.define(xml);
    expect(await driver.get(REF)).toMatchObject({
      answer: 'unknown',
      reason: expect.stringContaining(`${DISK}, ${SEED}: ${REF}, a copy of the machine, has its disk`),
    });
    expect(await driver.destroy(REF, null, anOrder)).toMatchObject({ outcome: 'failed', code: 'conflict' });
    expect(written()).toBe('what the tenant wrote');
    expect(await driver.stop(REF, null)).toMatchObject({ outcome: 'failed', code: 'gone' });
    expect(host.domains.size).toBe(1);
  });
});

describe('a machine whose domain somebody undefined', () => {
  async function undefinedMachine() {
    const machine = await aMachine();
    const xml = await machine.definition();
    await machine.bench.stop(REF);
    await machine.host.virsh(['undefine', REF]);
    return { ...machine, xml };
  }

  it('is not gone: its disk and its seed are told of', async () => {
    const { driver, written, host } = await undefinedMachine();
    expect(await driver.get(REF)).toEqual({
      answer: 'unknown',
      reason: expect.stringMatching(
        /^kvm-1 has no domain of it, and still berth-a.qcow2, berth-a.seed: define it again .* or delete it/,
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

  it('is not made again over its disk', async () => {
    const { bench, driver, host, written } = await undefinedMachine();
    expect(await driver.create(bench.spec(REF, { host: host.name }), null)).toMatchObject({
      outcome: 'failed',
      code: 'unfinished',
      sideEffect: 'certain',
    });
    expect(written()).toBe('what the tenant wrote');
    expect(host.domains.size).toBe(0);
    // The next attempt has another name, and the first is removed by an order that names it.
    await bench.create(`${REF}-g1`, { host: host.name });
    await bench.destroy(REF);
    expect([...host.files.keys()]).toEqual(['debian.qcow2', `${REF}-g1.qcow2`, `${REF}-g1.seed`]);
  });

  it('is gone once its disk and its seed are, and a delete removes what its console wrote', async () => {
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

it('files that a create is making are no leftovers, nor are images that are called as ours', async () => {
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

  it('is not started while nobody knows which has its data', async () => {
    const { bench, driver, from, to } = await onTwo();
    await from.virsh(['destroy', REF]);
    expect(await driver.start(REF, null)).toMatchObject({
      outcome: 'failed',
      code: 'conflict',
      detail: expect.stringContaining('undefine the one whose disk is the older'),
    });
    await to.virsh(['undefine', REF]);
    expect(await bench.start(REF)).toMatchObject({ host: 'kvm-1' });
  });

  it('is the one that has run, and not one that was only defined', async () => {
    const { driver, from, to, definition } = await onTwo();
    to.define((await definition()).replace('<berth:memo/>', '<berth:memo>create</berth:memo>'));
    await from.virsh(['destroy', REF]);
    expect(await driver.get(REF)).toMatchObject({ value: { power: 'stopped', host: 'kvm-1' } });
  });

  it('leaves no disk where it was moved from, once it is deleted', async () => {
    const { bench, from, to } = await onTwo();
    await from.virsh(['destroy', REF]);
    await from.virsh(['undefine', REF]);
    await to.virsh(['start', REF]);
    expect(await bench.driver.list()).toMatchObject({ items: [{ ref: REF, host: 'kvm-2' }], leftovers: [] });
    await bench.destroy(REF);
    expect([...from.files.keys(), ...to.files.keys()]).toEqual(['debian.qcow2', 'debian.qcow2']);
  });
});

it('what a tenant sees of a machine and of a volume does not tell which attempt it is', async () => {
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

describe('a call that comes late', () => {
  const aCall = (fence: number): Call => ({
    deadline: Number.MAX_SAFE_INTEGER,
    fence,
    signal: new AbortController().signal,
  });

  /** The machine and a volume, and a server whose next command that begins with `word` is held up. */
  async function late() {
    const machine = await aMachine();
    const { host, volumes, bench } = machine;
    await volumes.create({ ...bench.context.volumeSpec('berth-v'), host: host.name }, null);
    const own = Object.create(host) as MemoryHost;
    let held = '';
    let reached = Promise.withResolvers<void>();
    let awake = Promise.withResolvers<void>();
    const virsh: MemoryHost['virsh'] = async (args, call) => {
      if (args[0] === held) {
        held = '';
        reached.resolve();
        await awake.promise;
      }
      return host.virsh(args, call);
    };
    Object.defineProperty(own, 'virsh', { value: virsh });
    const slow = openMemoryPlatform([own]).bench.driver;
    /** Runs `call` until it is about to send `word`, then `between`, then lets it go on. */
    const hold = async <T>(word: string, call: () => Promise<T>, between: () => Promise<unknown>) => {
      [held, reached, awake] = [word, Promise.withResolvers(), Promise.withResolvers()];
      const calling = call();
      await reached.promise;
      await between();
      awake.resolve();
      return calling;
    };
    const runs = () => host.domains.get(REF)?.live !== undefined;
    return { ...machine, slow, hold, runs };
  }

  it.each([undefined, aCall(1)])('to stop it does not stop its next run', async (call) => {
    const { slow, hold, runs, bench } = await late();
    await hold(
      'shutdown',
      () => slow.stop(REF, null, call),
      async () => {
        await bench.stop(REF);
        await bench.start(REF);
      },
    );
    expect(runs()).toBe(true);
  });

  it('to stop it does not stop the run that a start has found since', async () => {
    const { slow, hold, runs, driver } = await late();
    const step = await hold(
      'shutdown',
      () => slow.stop(REF, null, aCall(1)),
      async () => expect(await driver.start(REF, null, aCall(2))).toMatchObject({ outcome: 'done' }),
    );
    expect(step).toMatchObject({ outcome: 'failed', code: 'transient', sideEffect: 'none' });
    expect(runs()).toBe(true);
  });

  it('to cut its power in a restart does not cut that of its next run', async () => {
    const { slow, hold, bench, host } = await late();
    await slow.restart(REF, 'one', null);
    await hold(
      'destroy',
      () => slow.restart(REF, 'one', 'kvm-1'),
      () => bench.finish('restart', (cookie) => bench.driver.restart(REF, 'one', cookie)),
    );
    expect(host.domains.get(REF)?.live?.attributes['id']).toBe('2');
  });

  it('to start it does not start it once a stop has found it stopped', async () => {
    const { slow, hold, runs, bench, driver } = await late();
    await bench.stop(REF);
    const claimed = await slow.start(REF, null, aCall(1));
    expect(claimed.outcome).toBe('pending');
    await hold(
      'start',
      () => slow.start(REF, 'kvm-1', aCall(1)),
      () => bench.finish('stop', (cookie) => driver.stop(REF, cookie, aCall(2))),
    );
    expect(runs()).toBe(false);
  });

  it('to attach a volume does not attach it after a detach that found nothing', async () => {
    const { slow, hold, volumes } = await late();
    const step = await hold(
      'attach-device',
      async () => slow.volumes?.attach('berth-v', REF, null, aCall(1)),
      async () =>
        expect(await volumes.detach('berth-v', REF, null, aCall(2))).toMatchObject({ outcome: 'done' }),
    );
    expect(step).toMatchObject({ outcome: 'failed', code: 'transient', sideEffect: 'none' });
    expect(await volumes.get('berth-v')).toMatchObject({ value: { attachedTo: [] } });
  });

  it('to detach a volume does not detach it after an attach that found it attached', async () => {
    const { slow, hold, volumes } = await late();
    await volumes.attach('berth-v', REF, null);
    await hold(
      'detach-disk',
      async () => slow.volumes?.detach('berth-v', REF, null, aCall(1)),
      async () =>
        expect(await volumes.attach('berth-v', REF, null, aCall(2))).toMatchObject({ outcome: 'done' }),
    );
    expect(await volumes.get('berth-v')).toMatchObject({ value: { attachedTo: [REF] } });
  });

  it('to resize a volume does not make it smaller', async () => {
    const { slow, hold, volumes } = await late();
    await volumes.attach('berth-v', REF, null);
    await hold(
      'blockresize',
      async () => slow.volumes?.resize('berth-v', 20, null, aCall(1)),
      async () => volumes.resize('berth-v', 40, null, aCall(2)),
    );
    expect(await volumes.get('berth-v')).toMatchObject({ value: { sizeGb: 40 } });
  });

  it('to read it writes nothing into the mark of its next run', async () => {
    const { host, slow, hold, bench, definition } = await late();
    host.define((await definition()).replace('<berth:memo/>', '<berth:memo>boot</berth:memo>'));
    await hold(
      'metadata',
      () => slow.get(REF).catch(() => undefined),
      async () => bench.stop(REF),
    );
    expect(await definition()).toContain('state="released"');
  });
});

it('a call that is over says whether something was begun', async () => {
  const { driver, host } = await aMachine();
  const over: Call = { deadline: -1, fence: 1, signal: new AbortController().signal };
  expect(await driver.stop(REF, null, over)).toMatchObject({ code: 'transient', sideEffect: 'none' });
  expect(await driver.stop(REF, '0:1', over)).toMatchObject({ code: 'transient', sideEffect: 'possible' });
  expect(await driver.destroy(REF, null, anOrder, over)).toMatchObject({ sideEffect: 'none' });
  expect(host.domains.get(REF)?.live).toBeDefined();
});
