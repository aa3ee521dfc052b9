import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { machineSpec } from '../../src/drivers/simulator/simulator.fixture.ts';
import { decideOrphan } from '../../src/orchestrator/operate/actions/orphans.ts';
import { startPlainOrchestrator } from '../support/plain-orchestrator.ts';
import { actor, audited } from './operator-actions.fixture.ts';

type Berth = Awaited<ReturnType<typeof startPlainOrchestrator>>;

/** A machine on the platform that no row knows. */
async function makeMachine({ platform: { driver }, clock }: Berth, ref: string, note: string): Promise<void> {
  const spec = machineSpec({ ref, note });
  let step = await driver.create(spec, null);
  while (step.outcome === 'pending') {
    await clock.advance(1_000);
    step = await driver.create(spec, step.cookie);
  }
}

/** The platform shows nothing of the machine, as if it were gone, until the returned function is called. */
function hide({ platform: { driver } }: Berth, ref: string): () => void {
  const { get, list } = driver;
  driver.get = async (asked) => (asked === ref ? { answer: 'gone' } : get(asked));
  driver.list = async () => {
    const listing = await list();
    if (listing.answer !== 'listed') return listing;
    return { ...listing, items: listing.items.filter((machine) => machine.ref !== ref) };
  };
  return () => void Object.assign(driver, { get, list });
}

/** An instance that no row knows. */
const UNKNOWN = `inst-${'0123456789abcdef'.repeat(2)}`;

/** Makes a machine whose row may have been pruned, with a note like that of `like`. */
async function makePruned(berth: Berth, like: string): Promise<string> {
  const { clock, orchestrator, platform } = berth;
  const note = JSON.parse(platform.machines.get(like)?.note ?? '');
  await orchestrator.store.transact((tx) => tx.marks.put('instances_pruned_until', clock.now()));
  await makeMachine(berth, `berth-${UNKNOWN}`, JSON.stringify({ ...note, id: UNKNOWN }));
  await clock.advance(15_000);
  return `berth-${UNKNOWN}`;
}

describe('a decision about a machine that no live instance has', () => {
  const setup = async () => {
    const berth = await startPlainOrchestrator(() => 'none', { reconcile: { orphanGraceMs: 1_000 } });
    const { store } = berth.orchestrator;
    const id = await berth.create();
    await berth.passUntil(`/instances/${id}`, 'ONLINE');
    const row = await store.read.instances.byId(id);
    if (row === null) throw new Error('nothing was made');
    return { berth, store, row, deps: { store, clock: berth.clock } };
  };

  it('makes one whose instance ended by itself a new instance of its account [operator-adopt]', async () => {
    const { berth, store, row, deps } = await setup();
    await using _ = berth;
    const { id: lost, ownerRef: ref } = row;
    await berth.passUntil(`/instances/${await berth.create()}`, 'ONLINE');
    const show = hide(berth, ref);
    await berth.passUntil(`/instances/${lost}`, 'ERROR');
    // It turns up again: its disk may be wanted.
    show();
    await berth.clock.advance(15_000);
    expect(await decideOrphan.perform(deps, actor, { ref, action: 'adopt', dry_run: true })).toMatchObject({
      ref,
      done: false,
    });
    await berth.clock.advance(15_000);
    await decideOrphan.perform(deps, actor, { ref, action: 'adopt', dry_run: false });
    await berth.clock.advance(15_000);
    const adopted = await store.read.instances.byOwnerRef(ref);
    expect(adopted).toMatchObject({ status: 'ONLINE', accountId: row.accountId });
    const digest = createHash('sha256').update(`${ref} adopted from ${lost}`).digest('hex');
    expect(adopted?.id).toBe(`inst-${digest.slice(0, 32)}`);
    expect((await berth.read(`/instances/${lost}`))['status']).toBe('ERROR');
    const actions = await audited(berth);
    expect(actions.toSorted()).toEqual(['instance.adopt done', 'machine.adopt done', 'machine.adopt done']);
    await berth.clock.advance(15_000);
    expect((await store.read.alarms.list()).filter(({ subject }) => subject === ref)).toEqual([]);
    // And it is deleted like any other, while the old one is left as it is.
    await berth.orchestrator.request('DELETE', `/instances/${adopted?.id}`);
    await berth.passUntil(`/instances/${adopted?.id}`, 'GONE');
    expect(berth.platform.machines.has(ref)).toBe(false);
  });

  it('or takes our mark off it, or removes it with its instance [operator-release]', async () => {
    const { berth, store, row, deps } = await setup();
    await using _ = berth;
    const { id: lost, ownerRef: ref } = row;
    await berth.passUntil(`/instances/${await berth.create()}`, 'ONLINE');
    const show = hide(berth, ref);
    await berth.passUntil(`/instances/${lost}`, 'ERROR');
    show();
    await berth.clock.advance(15_000);
    const destroy = decideOrphan.perform(deps, actor, { ref, action: 'destroy', dry_run: false });
    await expect(destroy).rejects.toThrow(`berth instances rm ${lost} --yes`);
    let isOff = false;
    berth.orchestrator.driver.disown = async (asked) => {
      if (!isOff)
        return { outcome: 'failed', code: 'conflict', sideEffect: 'none', detail: 'it runs: stop it first' };
      berth.platform.lose(asked);
      return { outcome: 'done', value: null };
    };
    const release = () => decideOrphan.perform(deps, actor, { ref, action: 'release', dry_run: false });
    await release();
    await berth.clock.advance(15_000);
    isOff = true;
    await release();
    await berth.clock.advance(30_000);
    expect(await audited(berth)).toEqual([
      ...['machine.release done', 'machine.release done', 'machine.release failed', 'machine.release done'],
      'machine.destroy refused',
    ]);
    expect((await store.read.alarms.list()).filter(({ subject }) => subject === ref)).toEqual([]);
    expect((await berth.read(`/instances/${lost}`))['status']).toBe('ERROR');
  });

  it('or removes one that never had a row, until it is proved gone [operator-destroy-orphan]', async () => {
    const { berth, store, deps } = await setup();
    await using _ = berth;
    const ref = `berth-${UNKNOWN}`;
    const make = () => makeMachine(berth, ref, 'what nobody reads');
    await make();
    await berth.clock.advance(15_000);
    expect((await store.read.alarms.list()).map(({ subject }) => subject)).toContain(ref);
    const order = { ref, action: 'destroy' } as const;
    expect(await decideOrphan.perform(deps, actor, { ...order, dry_run: true })).toMatchObject({
      done: false,
    });
    await berth.clock.advance(15_000);
    expect(berth.platform.machines.has(ref)).toBe(true);
    await decideOrphan.perform(deps, actor, { ...order, dry_run: false });
    await berth.clock.advance(30_000);
    expect(berth.platform.machines.has(ref)).toBe(false);
    expect(await store.read.attempts.byRef(ref)).toMatchObject({
      destroyOrder: { reason: 'operator', by: actor.name },
      closedAt: expect.any(Number),
    });
    expect((await store.read.alarms.list()).filter(({ subject }) => subject === ref)).toEqual([]);
    // It turns up again, as a late create has it.
    await make();
    expect(berth.platform.machines.has(ref)).toBe(true);
    await berth.clock.advance(30_000);
    expect(berth.platform.machines.has(ref)).toBe(false);
  });

  it('makes one whose row may have been pruned a new instance, and its alarm ends [operator-adopt-pruned]', async () => {
    const { berth, store, row, deps } = await setup();
    await using _ = berth;
    const ref = await makePruned(berth, row.ownerRef);
    const alarms = async () =>
      (await store.read.alarms.list()).filter(({ subject }) => subject === ref).map(({ kind }) => kind);
    expect(await alarms()).toEqual(['row_lost']);
    await decideOrphan.perform(deps, actor, { ref, action: 'adopt', dry_run: false });
    await berth.clock.advance(30_000);
    expect((await store.read.instances.byOwnerRef(ref))?.id).not.toBe(UNKNOWN);
    expect(await alarms()).toEqual([]);
    expect((await berth.orchestrator.request('GET', `/instances/${UNKNOWN}`)).status).toBe(404);
  });

  it('is not carried out later than ten minutes after it was decided [operator-order-expires]', async () => {
    const { berth, store, row, deps } = await setup();
    await using _ = berth;
    const { driver } = berth.platform;
    const ref = await makePruned(berth, row.ownerRef);
    const { get } = driver;
    driver.get = async (asked) => (asked === ref ? { answer: 'unknown', reason: 'it is busy' } : get(asked));
    await decideOrphan.perform(deps, actor, { ref, action: 'adopt', dry_run: false });
    await berth.clock.advance(11 * 60_000);
    Object.assign(driver, { get });
    await berth.clock.advance(30_000);
    expect(await store.read.instances.byOwnerRef(ref)).toBeNull();
    expect(await audited(berth)).toEqual(['machine.adopt failed', 'machine.adopt done']);
  });

  it('is refused while another decision about the machine is carried out [operator-one-decision]', async () => {
    const { berth, store, deps } = await setup();
    await using _ = berth;
    const ref = `berth-${UNKNOWN}`;
    const since = berth.clock.now();
    const alarm = { kind: 'orphan_machine', subject: ref, platform: 'default', text: 'it is there' } as const;
    await store.transact((tx) =>
      tx.alarms.put({ ...alarm, since, lastSeenAt: since, acknowledgedBy: null, note: null }),
    );
    const decide = (action: 'adopt' | 'release' | 'destroy') =>
      decideOrphan.perform(deps, actor, { ref, action, dry_run: false });
    await decide('adopt');
    await decide('adopt');
    await expect(decide('release')).rejects.toThrow(`adopt of ${ref} was already ordered`);
    await expect(decide('destroy')).rejects.toThrow(`adopt of ${ref} was already ordered`);
    await store.transact((tx) => tx.marks.remove(`adopt_requested:${ref}`));
    await decide('destroy');
    await expect(decide('release')).rejects.toThrow(`rm of ${ref} was already ordered`);
    await expect(decide('adopt')).rejects.toThrow(`rm of ${ref} was already ordered`);
  });

  it('removes a volume without a row, and never one that may be a live volume [operator-orphan-volume]', async () => {
    const { berth, store, row, deps } = await setup();
    await using _ = berth;
    const since = berth.clock.now();
    const [unknown, known] = ['0123456789abcdef', 'fedcba9876543210'].map((half) => `vol-${half.repeat(2)}`);
    await store.transact(async (tx) => {
      const { accountId, region } = row;
      await tx.volumes.insert({
        id: `${known}`,
        accountId,
        name: 'data',
        sizeGb: 20,
        region,
        type: null,
        status: 'AVAILABLE',
        priceMicroUsdPerHour: 0,
        createdAt: since,
        deletedAt: null,
        createOpenUntil: null,
        requestId: null,
        platform: 'default',
        ownerRef: `berth-${known}`,
        host: null,
        destroyOrder: null,
      });
      for (const subject of [`berth-${unknown}`, `berth-${known}-g1`])
        await tx.alarms.put({
          kind: 'orphan_volume',
          subject,
          platform: 'default',
          text: 'it has no row',
          since,
          lastSeenAt: since,
          acknowledgedBy: null,
          note: null,
        });
    });
    const destroy = (ref: string) =>
      decideOrphan.perform(deps, actor, { ref, action: 'destroy', dry_run: false });
    await expect(destroy(`berth-${known}-g1`)).rejects.toThrow(`${known} owns the volume berth-${known} on`);
    expect(await destroy(`berth-${unknown}`)).toMatchObject({ done: true });
    const adopt = decideOrphan.perform(deps, actor, {
      ref: `berth-${unknown}`,
      action: 'adopt',
      dry_run: false,
    });
    await expect(adopt).rejects.toThrow('only machines can be adopted or released');
  });

  it('is refused for what is no orphan, and for the machine of a live instance', async () => {
    const { berth, store, row, deps } = await setup();
    await using _ = berth;
    const order = { ref: row.ownerRef, action: 'adopt', dry_run: false } as const;
    await expect(decideOrphan.perform(deps, actor, order)).rejects.toThrow('There is no orphan berth-inst-');
    const alarm = {
      kind: 'orphan_machine',
      subject: row.ownerRef,
      platform: 'default',
      text: 'it is there',
    } as const;
    const now = berth.clock.now();
    await store.transact((tx) =>
      tx.alarms.put({ ...alarm, since: now, lastSeenAt: now, acknowledgedBy: null, note: null }),
    );
    await expect(decideOrphan.perform(deps, actor, order)).rejects.toThrow('there is nothing to adopt');
    await store.transact((tx) =>
      tx.alarms.put({
        ...alarm,
        kind: 'leftover',
        since: now,
        lastSeenAt: now,
        acknowledgedBy: null,
        note: null,
      }),
    );
    await expect(decideOrphan.perform(deps, actor, order)).rejects.toThrow('Only parts of');
    expect(new Set(await audited(berth))).toEqual(new Set(['machine.adopt refused']));
  });
});
