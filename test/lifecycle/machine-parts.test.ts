import { describe, expect, it } from 'vitest';
import type { OwnerRef, PlatformDriver, Step } from '../../src/orchestrator/model/platform-driver.ts';
import { decideOrphan } from '../../src/orchestrator/operate/actions/orphans.ts';
import { listAlarms, listOrphans } from '../../src/orchestrator/operate/views/alarms.ts';
import { readInstance } from '../../src/orchestrator/operate/views/instances.ts';
import { failed, pending, unfinished } from '../../src/platform-model/steps.ts';
import { startPlainOrchestrator } from '../support/plain-orchestrator.ts';
import { actor } from './operator-actions.fixture.ts';

interface Port {
  id: string;
  ref: OwnerRef;
  /** Written to the port before an order deletes its machine. */
  isOrdered: boolean;
}

/** A platform whose machines are two objects each: the machine, and a port that is deleted after it. */
class Ports {
  readonly all: Port[] = [];
  /** Whether ports can be deleted. */
  areStuck = false;
  /** Whether the first create leaves its port, and no machine. */
  breaksFirst = false;
  #made = 0;

  idsOf(ref: OwnerRef): string[] {
    return this.all.filter((port) => port.ref === ref).map(({ id }) => id);
  }

  wrap(driver: PlatformDriver): PlatformDriver {
    const partsOf = (ref: OwnerRef) => this.all.filter((port) => port.ref === ref);
    const remains = (ref: OwnerRef) => partsOf(ref).some(({ isOrdered }) => isOrdered);
    const removing = (ref: OwnerRef) => ({ ref, power: 'destroying' as const, createdAt: 1 });
    return {
      ...driver,
      get: async (ref) => {
        const found = await driver.get(ref);
        return found.answer === 'gone' && remains(ref) ? { answer: 'observed', value: removing(ref) } : found;
      },
      list: async () => {
        const listing = await driver.list();
        if (listing.answer !== 'listed') return listing;
        const whole = new Set(listing.items.map(({ ref }) => ref));
        const others = [...new Set(this.all.map(({ ref }) => ref))].filter((ref) => !whole.has(ref));
        const left = others.filter((ref) => !remains(ref));
        return {
          ...listing,
          items: [...listing.items, ...others.filter(remains).map(removing)],
          leftovers: left.map((ref) => ({ ref, detail: `port ${this.idsOf(ref).join(', ')}` })),
        };
      },
      create: async (spec, cookie, call) => {
        if (partsOf(spec.ref).length === 0)
          this.all.push({ id: `p${++this.#made}`, ref: spec.ref, isOrdered: false });
        if (this.breaksFirst && this.#made === 1) return unfinished('no machine for its port');
        return driver.create(spec, cookie, call);
      },
      destroy: async (ref, cookie, order, call): Promise<Step<null>> => {
        for (const port of partsOf(ref)) port.isOrdered = true;
        const machine = await driver.destroy(ref, cookie, order, call);
        const [port] = partsOf(ref);
        if (machine.outcome !== 'done' || port === undefined) return machine;
        if (this.areStuck) return pending('port', 500, `deleting port ${port.id}`, 1);
        this.all.splice(this.all.indexOf(port), 1);
        return partsOf(ref).length === 0 ? machine : failed('internal', 'a port is left', 'certain');
      },
    };
  }
}

async function start(ports: Ports) {
  const wrapDriver = (driver: PlatformDriver) => ports.wrap(driver);
  const berth = await startPlainOrchestrator(() => 'none', {
    wrapDriver,
    reconcile: { orphanGraceMs: 1_000 },
    retention: { lost_disks_hours: 0.01 },
  });
  const { store } = berth.orchestrator;
  const refOf = async (id: string) => (await store.read.instances.byId(id))?.ownerRef ?? '';
  const alarms = async () => (await listAlarms(store.read)).map(({ kind, subject }) => `${kind} ${subject}`);
  return { berth, store, refOf, alarms };
}

describe('a machine that is several objects', () => {
  it('is DESTROYING until its last part is gone, and operators see which one is overdue', async () => {
    const ports = new Ports();
    const { berth, store, alarms } = await start(ports);
    await using _ = berth;
    const id = await berth.create();
    await berth.passUntil(`/instances/${id}`, 'ONLINE');
    ports.areStuck = true;
    await berth.orchestrator.request('DELETE', `/instances/${id}`);
    await berth.clock.advance(30_000);
    expect([berth.platform.machines.size, (await berth.read(`/instances/${id}`))['status']]).toEqual([
      0,
      'DESTROYING',
    ]);
    expect(await alarms()).toEqual([`phase_overdue ${id}`]);
    const shown = await readInstance(store.read, id, berth.clock.now());
    expect(shown).toMatchObject({
      phase: 'deleting port p1',
      phase_since: expect.any(String),
      phase_due_at: '1970-01-01T00:00:00.001Z',
      diagnosis: {
        because: [expect.stringMatching(/“deleting port p1” for .* overdue for/), expect.anything()],
      },
    });
    ports.areStuck = false;
    await berth.passUntil(`/instances/${id}`, 'GONE');
    await berth.clock.advance(1_000);
    expect([ports.all, await alarms()]).toEqual([[], []]);
  });

  it('leaves a part that is named, kept for a live row, and removed retention.lost_disks_hours after its DELETE', async () => {
    const ports = new Ports();
    const { berth, refOf, store, alarms } = await start(ports);
    await using _ = berth;
    const id = await berth.create();
    await berth.passUntil(`/instances/${id}`, 'ONLINE');
    await berth.passUntil(`/instances/${await berth.create()}`, 'ONLINE');
    const ref = await refOf(id);
    berth.platform.lose(ref);
    await berth.passUntil(`/instances/${id}`, 'ERROR');
    await berth.clock.advance(30_000);
    expect(await alarms()).toEqual([`machine_gone ${id}`, `leftover ${ref}`]);
    expect(await listOrphans(store.read)).toMatchObject([
      { kind: 'leftover', ref, text: expect.stringContaining('(port p1)') },
    ]);
    const decide = (action: 'adopt' | 'destroy') =>
      decideOrphan.perform({ store, clock: berth.clock }, actor, { ref, action, dry_run: false });
    await expect(decide('adopt')).rejects.toThrow('Only parts of');
    await expect(decide('destroy')).rejects.toThrow(`berth instances rm ${id} --yes`);
    await berth.orchestrator.request('DELETE', `/instances/${id}`);
    await berth.passUntil(`/instances/${id}`, 'GONE');
    await berth.clock.advance(30_000);
    // A part may be a disk, and the machine ended without a request.
    expect([ports.idsOf(ref), await alarms()]).toEqual([['p1'], []]);
    await berth.clock.advance(10_000);
    expect([ports.idsOf(ref), ports.all.length, await alarms()]).toEqual([[], 1, []]);
  });

  it('leaves a part of an attempt that failed, which is removed by its order and not with its successor', async () => {
    const ports = new Ports();
    ports.breaksFirst = true;
    const { berth, refOf } = await start(ports);
    await using _ = berth;
    const id = await berth.create();
    await berth.passUntil(`/instances/${id}`, 'ONLINE');
    await berth.clock.advance(30_000);
    expect(ports.all).toEqual([{ id: 'p2', ref: await refOf(id), isOrdered: false }]);
  });

  it('leaves a part of no instance, which an operator removes', async () => {
    const ports = new Ports();
    const { berth, store, alarms } = await start(ports);
    await using _ = berth;
    const ref = `berth-inst-${'0123456789abcdef'.repeat(2)}`;
    ports.all.push({ id: 'p9', ref, isOrdered: false });
    await berth.clock.advance(30_000);
    expect([ports.idsOf(ref), await alarms()]).toEqual([['p9'], [`leftover ${ref}`]]);
    const input = { ref, action: 'destroy', dry_run: false } as const;
    await decideOrphan.perform({ store, clock: berth.clock }, actor, input);
    await berth.clock.advance(30_000);
    expect([ports.all, await alarms()]).toEqual([[], []]);
  });
});
