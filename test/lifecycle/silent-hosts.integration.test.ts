import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { machineSpec } from '../../src/drivers/simulator/simulator.fixture.ts';
import { putInstanceWork } from '../../src/orchestrator/model/rows.ts';
import { acceptLosses } from '../../src/orchestrator/operate/actions/losses.ts';
import { startPlainOrchestrator } from '../support/plain-orchestrator.ts';
import { anOrder } from '../support/rows/orchestrator-rows.ts';

const MINUTE_MS = 60_000;
const actor = { name: 'ann', source: 'cli', address: null } as const;

type Berth = Awaited<ReturnType<typeof startPlainOrchestrator>>;
let berth: Berth;
/** The hosts that are configured, each with whether it answers. */
let hosts: Map<string, 'answers' | 'silent'>;
/** Which host really has the machine. */
let holder: string;
let path: string;
let isAnswerLost: boolean;
/** Whether the platform calls a removal done that it never began. */
let isLying: boolean;

const asked = () => {
  const of = (state: string) => [...hosts].flatMap(([name, is]) => (is === state ? [name] : []));
  return { answered: of('answers'), silent: of('silent') };
};

/** An instance that is ONLINE on the host n1 of two. */
beforeEach(async () => {
  hosts = new Map([
    ['n1', 'answers'],
    ['n2', 'answers'],
  ]);
  holder = 'n1';
  isAnswerLost = false;
  isLying = false;
  berth = await startPlainOrchestrator();
  const { driver } = berth.platform;
  const { create, get, list, destroy } = driver;
  const isShown = () => hosts.get(holder) === 'answers';
  const isWhole = () => asked().silent.length === 0;
  driver.create = async (...call) => {
    const step = await create.apply(driver, call);
    return step.outcome === 'done' ? { ...step, value: { ...step.value, host: holder } } : step;
  };
  driver.list = async () => {
    const listing = await list.call(driver);
    if (listing.answer !== 'listed') return listing;
    const items = isShown() ? listing.items.map((item) => ({ ...item, host: holder })) : [];
    return { ...listing, items, hosts: asked() };
  };
  driver.get = async (ref) => {
    const found = await get.call(driver, ref);
    if (found.answer === 'observed' && isShown()) return found;
    return isWhole()
      ? { answer: 'gone', hosts: asked() }
      : { answer: 'unknown', reason: 'a host does not answer', hosts: asked() };
  };
  driver.destroy = async (ref, cookie) => {
    const isThere = isShown() && berth.platform.machines.has(ref);
    const step = isThere ? await destroy.call(driver, ref, cookie, anOrder) : undefined;
    if (step !== undefined && !isAnswerLost) return step;
    if (isLying) return { outcome: 'done', value: null };
    return isWhole() && !isAnswerLost
      ? { outcome: 'done', value: null }
      : { outcome: 'failed', code: 'transient', sideEffect: 'possible', detail: 'a host does not answer' };
  };
  path = `/instances/${await berth.create()}`;
  await berth.passUntil(path, 'ONLINE');
  await berth.clock.advance(MINUTE_MS);
});
afterEach(() => berth[Symbol.asyncDispose]());

const status = async () => (await berth.read(path))['status'];
const destroy = () => berth.orchestrator.request('DELETE', path);
const alarms = async () => {
  const standing = await berth.orchestrator.store.read.alarms.list();
  return standing.map(({ kind, subject, text }) => ({ kind, subject, text }));
};
const accept = () =>
  acceptLosses.perform(
    { store: berth.orchestrator.store, clock: berth.clock, platforms: new Map([['default', {}]]) },
    actor,
    { for_s: MINUTE_MS / 1000 },
  );

describe('a host that', () => {
  it.each([
    ['is renamed while it is silent', () => hosts.set('n9', 'silent')],
    ['has left the configuration', () => undefined],
  ])(
    '%s keeps its machines: they are told, not ended, until it is back [host-unknown-keeps]',
    async (_what, change) => {
      hosts.delete('n1');
      change();
      await berth.clock.advance(10 * MINUTE_MS);
      expect(await status()).toBe('ONLINE');
      expect(await alarms()).toMatchObject([{ kind: 'host_unknown', subject: 'default/n1' }]);
      hosts.delete('n9');
      hosts.set('n1', 'answers');
      await berth.clock.advance(MINUTE_MS);
      expect([await status(), await alarms()]).toEqual(['ONLINE', []]);
    },
  );

  it.each([
    ['is renamed while it is silent', () => hosts.set('n9', 'silent')],
    ['has left the configuration', () => undefined],
  ])(
    '%s is waited for by the delete of a machine that was on it, and nothing returns as an orphan [host-unknown-delete]',
    async (_what, change) => {
      hosts.delete('n1');
      change();
      await destroy();
      await berth.clock.advance(10 * MINUTE_MS);
      expect([await status(), berth.platform.machines.size]).toEqual(['DESTROYING', 1]);
      hosts.delete('n9');
      hosts.set('n1', 'answers');
      await berth.passUntil(path, 'GONE');
      expect(berth.platform.machines.size).toBe(0);
    },
  );

  it('is gone for good ends its machines once the operator accepts the losses, deleted or not [host-unknown-accepted]', async () => {
    hosts.delete('n1');
    await berth.clock.advance(MINUTE_MS);
    await accept();
    await berth.passUntil(path, 'ERROR');
    await berth.clock.advance(MINUTE_MS);
    expect(await alarms()).toEqual([]);
  });
});

describe('a machine that was moved by hand to a host that died before the next listing', () => {
  const move = () => {
    holder = 'n2';
    hosts.set('n2', 'silent');
  };

  it('keeps its status, and where it is deleted that waits for the host, with what to do [moved-to-silence]', async () => {
    move();
    await berth.clock.advance(10 * MINUTE_MS);
    expect(await status()).toBe('ONLINE');
    await destroy();
    await berth.clock.advance(10 * MINUTE_MS);
    expect([await status(), berth.platform.machines.size]).toEqual(['DESTROYING', 1]);
    expect(await alarms()).toMatchObject([
      { kind: 'step_failing', text: expect.stringContaining('`berth losses accept` ends it') },
    ]);
    hosts.set('n2', 'answers');
    await berth.passUntil(path, 'GONE');
    expect(berth.platform.machines.size).toBe(0);
  });

  it('is what a delete whose answer was lost at that moment may look like: the operator ends it [moved-to-silence-accepted]', async () => {
    hosts.set('n2', 'silent');
    isAnswerLost = true;
    const { ['machines']: machines } = berth.platform;
    for (const ref of machines.keys()) berth.platform.lose(ref);
    await destroy();
    await berth.clock.advance(10 * MINUTE_MS);
    expect(await status()).toBe('DESTROYING');
    await accept();
    await berth.passUntil(path, 'GONE');
  });

  it('is followed while it is being deleted: where it was shown last counts [moved-while-deleted]', async () => {
    berth.setPlan(({ method }) => (method === 'destroy' ? 'fail-before' : 'none'));
    await destroy();
    holder = 'n2';
    await berth.clock.advance(MINUTE_MS);
    hosts.set('n2', 'silent');
    berth.setPlan(() => 'none');
    await berth.clock.advance(10 * MINUTE_MS);
    expect([await status(), berth.platform.machines.size]).toEqual(['DESTROYING', 1]);
  });
});

describe('the delete of a machine beside a silent host', () => {
  it('ends soon, also where no listing had shown it yet: one is made before the removal [removed-beside-silence]', async () => {
    hosts.set('n2', 'silent');
    await berth.clock.advance(MINUTE_MS);
    const young = `/instances/${await berth.create()}`;
    await berth.passUntil(young, 'ONLINE');
    await berth.orchestrator.request('DELETE', young);
    await berth.passUntil(young, 'GONE', 10_000);
    expect(berth.platform.machines.size).toBe(1);
  });

  it('ends soon for what an earlier attempt left, whose removal takes longer than a listing [attempt-beside-silence]', async () => {
    const { store } = berth.orchestrator;
    const row = await store.read.instances.byId(path.split('/').at(-1) ?? '');
    if (row === null) throw new Error('nothing was made');
    const { driver } = berth.platform;
    let step = await driver.create(machineSpec({ ref: `${row.ownerRef}-g1` }), null);
    while (step.outcome === 'pending') {
      await berth.clock.advance(1_000);
      step = await driver.create(machineSpec({ ref: `${row.ownerRef}-g1` }), step.cookie);
    }
    driver.destroy = async (ref) => {
      if (!berth.platform.machines.has(ref)) return { outcome: 'done', value: null };
      berth.platform.lose(ref);
      return { outcome: 'pending', cookie: 'removing', pollAfterMs: 30_000 };
    };
    // A later attempt than the row of a restored backup has: it is the machine, and the earlier one is removed.
    await store.transact(async (tx) => {
      await tx.instances.update({ ...row, status: 'PROVISIONING' });
      await putInstanceWork(tx, row.id, 'create', berth.clock.now() + 10 * MINUTE_MS);
    });
    hosts.set('n2', 'silent');
    await berth.clock.advance(2 * MINUTE_MS);
    expect(await store.read.attempts.byRef(row.ownerRef)).toMatchObject({ closedAt: expect.any(Number) });
    expect([...berth.platform.machines.keys()]).toEqual([`${row.ownerRef}-g1`]);
  });

  it('is not over where a read is unknown though no host is silent, as a driver in doubt says [unknown-beside-nobody]', async () => {
    const { driver } = berth.platform;
    driver.get = async () => ({ answer: 'unknown', reason: 'it is in doubt', hosts: asked() });
    isLying = true;
    holder = 'nowhere';
    await destroy();
    await berth.clock.advance(10 * MINUTE_MS);
    expect([await status(), berth.platform.machines.size]).toEqual(['DESTROYING', 1]);
  });

  it('waits for that host where it fell silent since the last listing, with what to do; no driver is believed that calls it done [lied-beside-silence]', async () => {
    holder = 'n2';
    hosts.set('n2', 'silent');
    isLying = true;
    await destroy();
    await berth.clock.advance(10 * MINUTE_MS);
    expect([await status(), berth.platform.machines.size]).toEqual(['DESTROYING', 1]);
    expect(await alarms()).toMatchObject([
      { text: expect.stringContaining('`berth losses accept` ends it') },
    ]);
    isLying = false;
    hosts.set('n2', 'answers');
    await berth.passUntil(path, 'GONE');
    expect(berth.platform.machines.size).toBe(0);
  });

  it('ends where its answer was lost, if it was seen since that host fell silent [lost-beside-silence]', async () => {
    hosts.set('n2', 'silent');
    await berth.clock.advance(MINUTE_MS);
    isAnswerLost = true;
    await destroy();
    await berth.passUntil(path, 'GONE');
    expect(berth.platform.machines.size).toBe(0);
  });
});
