import { describe, expect, it } from 'vitest';
import { createAccount } from '../../src/orchestrator/accounts/accounts.ts';
import type { ObservedMachine } from '../../src/orchestrator/model/platform-driver.ts';
import { StoreUnavailable } from '../../src/orchestrator/model/store.ts';
import { systemRandom } from '../../src/runtime/system.ts';
import { startTestOrchestrator } from '../support/orchestrator.ts';
import { backUp, type RestoredOptions } from '../support/restored.ts';
import { instanceRequest, volumeRequest } from '../support/rows/requests.ts';
import { until } from '../support/time/until.ts';
import {
  make,
  makeVolume,
  startFirst,
  stop,
  UNKNOWN,
  unreachable,
  untilReconciled,
  volumeOf,
  withListing,
  withMachines,
} from './recovery.fixture.ts';

describe('an id without a row', () => {
  it('is 503 until the first listing was held against the rows, and 404 from then on [restore-503-until-listed]', async () => {
    let isDown = true;
    await using first = await startTestOrchestrator({
      wrapDriver: (driver) => withListing(driver, (items) => (isDown ? undefined : items)),
    });
    const unknown = { body: { error: { code: 'unavailable' } }, status: 503 };
    const volume = `vol-${'0'.repeat(32)}`;
    for (const [method, path, body] of [
      ['GET', `/instances/${UNKNOWN}`],
      ['HEAD', `/instances/${UNKNOWN}`],
      ['DELETE', `/instances/${UNKNOWN}`],
      ['POST', `/instances/${UNKNOWN}/stop`],
      ['POST', `/instances/${UNKNOWN}/start`],
      ['GET', `/volumes/${volume}`],
      ['DELETE', `/volumes/${volume}`],
      ['POST', `/volumes/${volume}/attach`, { instance_ids: [UNKNOWN] }],
      ['POST', `/volumes/${volume}/detach`, {}],
      ['POST', '/instances', instanceRequest({ volume_ids: [volume] })],
      ['POST', '/volumes', volumeRequest({ instance_ids: [UNKNOWN] })],
    ] as const) {
      const reply = await first.request(method, path, body === undefined ? {} : { body });
      if (method === 'HEAD') expect(reply.status).toBe(503);
      else expect(reply).toMatchObject(unknown);
      expect(reply.headers.get('retry-after')).toMatch(/^[1-9]\d*$/);
    }
    for (const id of ['inst-1', 'nonsense', `${UNKNOWN}0`])
      expect((await first.request('GET', `/instances/${id}`)).status).toBe(404);
    expect((await first.request('GET', '/instances')).status).toBe(200);
    isDown = false;
    await until('the id is known', async () => {
      const { status } = await first.request('GET', `/instances/${UNKNOWN}`);
      expect([503, 404]).toContain(status);
      return status === 404 && (await first.request('GET', `/volumes/${volume}`))['status'] === 404;
    });
  });

  it('is 404 from the first request on where the platform answers', async () => {
    await using first = await startTestOrchestrator();
    expect((await first.request('GET', `/instances/${UNKNOWN}`)).status).toBe(404);
    expect((await first.request('GET', `/volumes/vol-${'0'.repeat(32)}`)).status).toBe(404);
  });

  it('of an instance that was destroyed is 404 at once', async () => {
    await using first = await startFirst();
    const id = await make(first);
    await first.request('DELETE', `/instances/${id}`);
    await first.waitFor(id, 'GONE');
    const restore = await backUp(first);
    await using restored = await restore({ wrapDriver: (driver) => withListing(driver, () => undefined) });
    expect(await restored.read(`/instances/${id}`)).toBe('404');
    expect(await restored.read(`/instances/${UNKNOWN}`)).toBe('503');
    expect(await restored.read('/instances')).toBe('503');
  });
});

it('a row that was lost without a restore is not called younger than a backup in the log [lost-row-told]', async () => {
  await using first = await startFirst();
  const restore = await backUp(first);
  const id = await make(first);
  const restored = (lines: readonly { message: string }[]) =>
    lines.find(({ message }) => message.startsWith('the row of a machine was restored'))?.message;
  const prepare: RestoredOptions['prepare'] = async ({ transact }) =>
    void (await transact(({ marks }) => marks.remove('restored_from')));
  {
    await using again = await restore({ prepare });
    expect(await again.read(`/instances/${id}`)).toBe('ONLINE');
    expect(restored(again.lines)).toBe(
      'the row of a machine was restored from its note: the database had lost it',
    );
  }
  await using again = await restore();
  expect(restored(again.lines)).toContain('it is younger than the backup');
});

describe('in a database that was restored from a backup', () => {
  it('a machine that its platform is removing is DESTROYING and ends without an order, or by the next DELETE [restore-removing]', async () => {
    await using first = await startFirst();
    const restore = await backUp(first);
    const [removed, stuck] = [await make(first), await make(first)];
    const refOf = async (id: string) => (await first.store.read.instances.byId(id))?.ownerRef;
    const [removedRef, stuckRef] = [await refOf(removed), await refOf(stuck)];
    let isRemoved = false;
    const ordered = new Set<unknown>();
    const shown = (machine: ObservedMachine): ObservedMachine =>
      ordered.has(machine.ref) ? machine : { ...machine, power: 'destroying' };
    await using restored = await restore({
      wrapDriver: (driver) => ({
        ...withListing(driver, (items) =>
          items.filter(({ ref }) => !isRemoved || ref !== removedRef).map(shown),
        ),
        get: async (...args) => {
          if (isRemoved && args[0] === removedRef) return { answer: 'gone' };
          const found = await driver.get(...args);
          return found.answer === 'observed' ? { ...found, value: shown(found.value) } : found;
        },
        destroy: async (...args) => {
          ordered.add(args[0]);
          return driver.destroy(...args);
        },
      }),
    });
    for (const id of [removed, stuck]) {
      expect(await restored.read(`/instances/${id}`)).toBe('DESTROYING');
      expect((await restored.store.read.instances.byId(id))?.destroyOrder).toBeNull();
    }
    isRemoved = true;
    await restored.send('DELETE', `/instances/${stuck}`);
    for (const id of [removed, stuck])
      await until('it is gone', async () => (await restored.read(`/instances/${id}`)) === '404');
    expect(ordered).toEqual(new Set([stuckRef]));
  });

  it('what is younger than the backup has its row again, before the first request is answered', async () => {
    await using first = await startFirst();
    const restore = await backUp(first);
    const running = await make(first, { name: 'young', root_disk_size_gb: 100 });
    const stopped = await make(first);
    await stop(first, stopped);
    const volume = await makeVolume(first);
    await first.request('POST', `/volumes/${volume}/attach`, { body: { instance_ids: [running] } });
    await until(
      'it is attached',
      async () => (await volumeOf(first, `/volumes/${volume}`))['status'] === 'ATTACHED',
    );

    await using restored = await restore();
    const before = await first.store.read.instances.byId(running);
    expect(await restored.store.read.instances.byId(running)).toEqual({
      ...before,
      // Who asked is in the log and the history alone, not in the note.
      spec: { ...before?.spec, createdBy: undefined },
      createOpenUntil: null,
      updatedAt: expect.any(Number),
      version: 1,
    });
    expect(await restored.read(`/instances/${running}`)).toBe('ONLINE');
    expect(await restored.read(`/instances/${stopped}`)).toBe('STOPPED');
    expect(await restored.read(`/volumes/${volume}`)).toBe('ATTACHED');
    expect(await restored.store.read.volumes.byId(volume)).toEqual({
      ...(await first.store.read.volumes.byId(volume)),
      createOpenUntil: null,
    });
    expect(await restored.store.read.volumes.attachmentsOfVolume(volume)).toEqual([
      { volumeId: volume, instanceId: running, state: 'attached' },
    ]);
    expect(await restored.store.read.claims.isHeldBy(running)).toBe(true);
    expect(await restored.store.read.claims.isHeldBy(stopped)).toBe(false);
    expect(await restored.store.read.work.backlog()).toMatchObject({ count: 0 });
    const audit = await restored.store.read.audit.page({ limit: 9, action: 'instance.adopt' });
    expect(audit.map(({ subject }) => subject).sort()).toEqual([running, stopped].sort());
    expect(await restored.store.read.audit.page({ limit: 9, action: 'volume.adopt' })).toMatchObject([
      { subject: volume, source: 'server', outcome: 'done', detail: { platform: 'default' } },
    ]);
    expect(await restored.store.read.marks.get('restored_from')).toBeNull();
    expect(restored.lines.map(({ message }) => message)).toContainEqual(
      expect.stringMatching(
        /API keys that were revoked since the backup are valid again: .*berth keys revoke/,
      ),
    );
    const { status } = await restored.fetch(`/v1/instances/${running}`, {
      method: 'DELETE',
      headers: { Authorization: `Bearer ${first.key}` },
    });
    expect(status).toBe(200);
    await until('it is gone', async () => (await restored.read(`/instances/${running}`)) === '404');
  });

  it('a machine that has no place left takes one all the same', async () => {
    await using first = await startFirst({
      changeOffer: (offer) => ({ ...offer, placements: offer.placements.map((at) => ({ ...at, units: 1 })) }),
    });
    const restore = await backUp(first);
    const id = await make(first);
    await using restored = await restore({
      prepare: (store) =>
        store.transact(async (tx) => {
          const record = await first.store.read.instances.byId(id);
          if (record === null) throw new Error('no record');
          const other = {
            ...record,
            id: 'inst-other',
            ownerRef: 'berth-inst-other',
            status: 'ERROR' as const,
          };
          await tx.instances.insert({ ...other, error: 'failed' });
          const { offerId, region } = record;
          await tx.claims.take({ instanceId: 'inst-other', offerId, region, capacity: 1 });
        }),
    });
    expect(await restored.read(`/instances/${id}`)).toBe('ONLINE');
    expect(await restored.store.read.claims.use()).toMatchObject([{ claimed: 2 }]);
  });

  const noteOf = (machine: ObservedMachine) => JSON.parse(machine.note ?? '');
  it.each<[string, (machine: ObservedMachine) => string, RegExp]>([
    ['whose note cannot be read', () => 'of another program', /^its note cannot be read$/],
    [
      'whose account is younger than the backup',
      (machine) => JSON.stringify({ ...noteOf(machine), accountId: 'acct-late' }),
      /^there is no account acct-late$/,
    ],
  ])('a machine %s is 503 and stays', async (_what, toNote, problem) => {
    await using first = await startFirst();
    const restore = await backUp(first);
    const id = await make(first);
    await using restored = await restore({
      reconcile: { orphanGraceMs: 1, watchIntervalMs: 20 },
      wrapDriver: (driver) =>
        withListing(driver, (items) => items.map((machine) => ({ ...machine, note: toNote(machine) }))),
    });
    let rounds = 0;
    await until('there were some rounds', async () => {
      expect(await restored.read(`/instances/${id}`)).toBe('503');
      return ++rounds > 60;
    });
    expect(await restored.read(`/instances/${UNKNOWN}`)).toBe('404');
    expect(await first.driver.get(`berth-${id}`)).toMatchObject({ value: { power: 'running' } });
    const alarms = restored.lines.filter(({ message }) => /the row cannot be restored/.test(message));
    expect(alarms).toMatchObject([
      { fields: { ref: `berth-${id}`, problem: expect.stringMatching(problem) } },
    ]);
    expect(await restored.store.read.marks.get('restored_from')).not.toBeNull();
  });

  it('a machine whose account is made again has its row; until then it takes a unit of its placement', async () => {
    await using first = await startFirst({
      changeOffer: (offer) => ({ ...offer, placements: offer.placements.map((at) => ({ ...at, units: 2 })) }),
    });
    const accountId = `acct-${'0123456789'.repeat(2)}`;
    const restore = await backUp(first);
    const id = await make(first);
    await using restored = await restore({
      wrapDriver: (driver) =>
        withListing(driver, (items) =>
          items.map((machine) =>
            machine.ref === `berth-${id}`
              ? { ...machine, note: JSON.stringify({ ...noteOf(machine), accountId }) }
              : machine,
          ),
        ),
    });
    const remedy = `there is no account ${accountId}: make it with \`berth accounts create <name> --id ${accountId}\``;
    expect(restored.lines.filter(({ fields }) => 'problem' in fields)).toMatchObject([
      { fields: { ref: `berth-${id}`, problem: remedy } },
    ]);
    const other = await restored.send('POST', '/instances', instanceRequest());
    expect(await restored.send('POST', '/instances', instanceRequest()).catch(String)).toMatch(
      /capacity_unavailable/,
    );
    await until('it is ONLINE', async () => (await restored.read(`/instances/${other}`)) === 'ONLINE');
    const deps = { store: restored.store, clock: first.clock, random: systemRandom };
    await createAccount(deps, 'late', accountId);
    await untilReconciled(restored.store);
    expect(await restored.store.read.instances.byId(id)).toMatchObject({ accountId, status: 'ONLINE' });
    expect(await restored.store.read.claims.use()).toMatchObject([{ claimed: 2 }]);
  });

  it('machines that have failed since end as losses, no more of them than the cap lets', async () => {
    await using first = await startFirst();
    const restore = await backUp(first);
    const ids = [await make(first), await make(first), await make(first)];
    const failed = (machine: ObservedMachine) => ({ ...machine, power: 'failed' as const });
    await using restored = await restore({
      probe: unreachable,
      reconcile: { maxLosses: { share: 0, least: 1 } },
      wrapDriver: (driver) => withMachines(driver, failed),
    });
    const statuses = () => Promise.all(ids.map((id) => restored.read(`/instances/${id}`)));
    await until('the others are held', async () => {
      const works = await Promise.all(ids.map((id) => restored.store.read.work.of(id)));
      return works.filter((work) => work?.lastError?.startsWith('held')).length === 2;
    });
    expect((await statuses()).sort()).toEqual(['ERROR', 'PROVISIONING', 'PROVISIONING']);
  });

  it('nothing is sold before the machines that lost their rows have them again', async () => {
    await using first = await startFirst({
      changeOffer: (offer) => ({ ...offer, placements: offer.placements.map((at) => ({ ...at, units: 2 })) }),
    });
    const restore = await backUp(first);
    const id = await make(first);
    let isBroken = true;
    await using restored = await restore({
      prepare: async ({ read: { credentials } }) => {
        const read = credentials.accountById.bind(credentials);
        credentials.accountById = async (accountId) => {
          if (isBroken) throw new StoreUnavailable('test');
          return read(accountId);
        };
      },
    });
    const buy = () => restored.send('POST', '/instances', instanceRequest()).catch(String);
    expect(await buy()).toMatch(/capacity_unavailable/);
    expect(await restored.store.read.claims.use()).toEqual([]);
    isBroken = false;
    await until('it has its row', async () => (await restored.read(`/instances/${id}`)) === 'ONLINE');
    await until('the other unit is sold', async () => (await buy()).startsWith('inst-'));
    expect(await buy()).toMatch(/capacity_unavailable/);
  });

  it('so much was deleted since that the listing is not believed: the young are adopted, nothing ends or is denied', async () => {
    await using first = await startFirst();
    const deleted = [await make(first), await make(first), await make(first), await make(first)];
    const restore = await backUp(first);
    for (const id of deleted) await first.request('DELETE', `/instances/${id}`);
    for (const id of deleted) await first.waitFor(id, 'GONE');
    const young = await make(first);
    await using restored = await restore();
    await until(
      'the young one is ONLINE',
      async () => (await restored.read(`/instances/${young}`)) === 'ONLINE',
    );
    for (const id of deleted) expect(await restored.read(`/instances/${id}`)).toBe('ONLINE');
    expect(await restored.read(`/instances/${UNKNOWN}`)).toBe('503');
    await restored.store.transact((tx) => tx.marks.put('losses_accepted_until', Date.now() + 60_000));
    for (const id of deleted)
      await until('it has ended', async () => (await restored.read(`/instances/${id}`)) === 'ERROR');
    expect(await restored.read(`/instances/${young}`)).toBe('ONLINE');
    await until('all is known', async () => (await restored.read(`/instances/${UNKNOWN}`)) === '404');
    await untilReconciled(restored.store);
  });

  it.each([
    ['within its window ends there as any create', 60_000, expect.any(Number)],
    [
      'after its window has no other end: it was ONLINE once, and its guest may have closed its door',
      1,
      null,
    ],
  ])('a machine that runs and proves nothing %s', async (_what, onlineWithinMs, deadlineAt) => {
    await using first = await startFirst({
      probe: { probe: async () => ({ ok: true, hostKeyFingerprint: 'SHA256:x' }) },
    });
    const restore = await backUp(first);
    const id = await make(first);
    await using restored = await restore({
      probe: unreachable,
      wrapDriver: (driver) =>
        withListing(driver, (items) =>
          items.map((machine) => {
            const note = JSON.parse(machine.note ?? '');
            return { ...machine, note: JSON.stringify({ ...note, spec: { ...note.spec, onlineWithinMs } }) };
          }),
        ),
    });
    expect(await restored.read(`/instances/${id}`)).toBe('PROVISIONING');
    expect(await restored.store.read.work.of(id)).toMatchObject({ kind: 'verify', deadlineAt });
  });
});
