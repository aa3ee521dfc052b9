import { describe, expect, it } from 'vitest';
import { createAccount } from '../../src/orchestrator/accounts/accounts.ts';
import type { ObservedMachine, PlatformDriver } from '../../src/orchestrator/model/platform-driver.ts';
import { StoreUnavailable } from '../../src/orchestrator/model/store.ts';
import type { SshProbe } from '../../src/ports/ssh-probe.ts';
import { systemRandom } from '../../src/runtime/system.ts';
import { anOrder } from '../../testing/orchestrator-rows.ts';
import { instanceRequest, volumeRequest } from '../../testing/requests.ts';
import { until } from '../../testing/until.ts';
import { startTestOrchestrator, type TestOptions, type TestOrchestrator } from '../support/orchestrator.ts';
import { backUp, type RestoredOptions } from '../support/restored.ts';

/** It is there for its platform; once what a test prepares is done it does nothing by itself. */
const startFirst = (options: TestOptions = {}) =>
  startTestOrchestrator({ ...options, reconcile: { watch_interval_s: 3600 } });

async function make(first: TestOrchestrator, overrides: Record<string, unknown> = {}): Promise<string> {
  const { body } = await first.request('POST', '/instances', { body: instanceRequest(overrides) });
  const id = String(body['id']);
  await first.waitFor(id, 'ONLINE');
  return id;
}

async function makeVolume(first: TestOrchestrator): Promise<string> {
  const { body } = await first.request('POST', '/volumes', { body: volumeRequest() });
  const path = `/volumes/${body['id']}`;
  await until('the volume is there', async () => (await volumeOf(first, path))['status'] === 'AVAILABLE');
  return String(body['id']);
}
const volumeOf = async (first: TestOrchestrator, path: string) => (await first.request('GET', path)).body;

async function stop(first: TestOrchestrator, id: string): Promise<void> {
  await first.request('POST', `/instances/${id}/stop`);
  await first.waitFor(id, 'STOPPED');
}

/** Each look at the driver's listings goes through `change`. */
function withListing(
  driver: PlatformDriver,
  change: (machines: ObservedMachine[]) => ObservedMachine[] | undefined,
): PlatformDriver {
  return {
    ...driver,
    list: async () => {
      const listing = await driver.list();
      const items = listing.answer === 'listed' ? change(listing.items) : undefined;
      return items === undefined ? { answer: 'unknown', reason: 'test' } : { answer: 'listed', items };
    },
  };
}

const unreachable: SshProbe = {
  probe: async () => ({ ok: false, step: 'connect', detail: 'connection refused' }),
};

const UNKNOWN = `inst-${'0'.repeat(32)}`;

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

  it('what was stopped, started, attached or detached since is what it is now', async () => {
    await using first = await startFirst();
    const [started, stopped] = [await make(first), await make(first)];
    const [attached, detached] = [await makeVolume(first), await makeVolume(first)];
    await stop(first, started);
    await first.request('POST', `/volumes/${detached}/attach`, { body: { instance_ids: [stopped] } });
    await until(
      'it is attached',
      async () => (await volumeOf(first, `/volumes/${detached}`))['status'] === 'ATTACHED',
    );
    const restore = await backUp(first);

    await first.request('POST', `/instances/${started}/start`);
    await first.waitFor(started, 'ONLINE');
    await first.request('POST', `/volumes/${detached}/detach`);
    await first.request('POST', `/volumes/${attached}/attach`, { body: { instance_ids: [stopped] } });
    await until('both are done', async () => {
      const [a, d] = [
        await volumeOf(first, `/volumes/${attached}`),
        await volumeOf(first, `/volumes/${detached}`),
      ];
      return a['status'] === 'ATTACHED' && d['status'] === 'AVAILABLE';
    });
    await stop(first, stopped);

    await using restored = await restore();
    expect(await restored.read(`/volumes/${attached}`)).toBe('ATTACHED');
    expect(await restored.read(`/volumes/${detached}`)).toBe('AVAILABLE');
    await until('the one that runs is ONLINE', async () => {
      const status = await restored.read(`/instances/${started}`);
      expect(['STOPPED', 'ONLINE']).toContain(status);
      return status === 'ONLINE';
    });
    await until(
      'the other is STOPPED',
      async () => (await restored.read(`/instances/${stopped}`)) === 'STOPPED',
    );
    expect(await restored.store.read.claims.isHeldBy(started)).toBe(true);
    const found = await first.driver.get(`berth-${started}`);
    expect(found).toMatchObject({ answer: 'observed', value: { power: 'running' } });
    await until(
      'the mark is gone',
      async () => (await restored.store.read.marks.get('restored_from')) === null,
    );
  });

  it('a create that the backup held is not sent again: its machine is adopted, or its instance fails', async () => {
    await using first = await startFirst({ platform: { boot_ms: [5_000, 5_000] } });
    const [{ body: kept }, { body: deleted }] = [
      await first.request('POST', '/instances', { body: instanceRequest() }),
      await first.request('POST', '/instances', { body: instanceRequest() }),
    ];
    const [keptId, deletedId] = [String(kept['id']), String(deleted['id'])];
    const restore = await backUp(first);
    await first.waitFor(keptId, 'ONLINE');
    await first.request('DELETE', `/instances/${deletedId}`);
    await first.waitFor(deletedId, 'GONE');
    const creates: string[] = [];
    await using restored = await restore({
      wrapDriver: (driver) => ({
        ...driver,
        create: (spec, cookie) => {
          creates.push(spec.ref);
          return driver.create(spec, cookie);
        },
      }),
      prepare: (store) =>
        store.transact(async (tx) => {
          for (const id of [keptId, deletedId]) {
            await tx.instances.byId(id);
            const work = await tx.work.of(id);
            expect(work?.kind).toBe('create');
            if (work !== null) await tx.work.put({ ...work, deadlineAt: 1 });
          }
        }),
    });
    await until('one is ONLINE', async () => (await restored.read(`/instances/${keptId}`)) === 'ONLINE');
    await until(
      'the other has failed',
      async () => (await restored.read(`/instances/${deletedId}`)) === 'ERROR',
    );
    await until('nothing is open', async () => (await restored.store.read.work.backlog()).count === 0);
    expect(creates).toEqual([]);
  });

  it('a restart that the backup held is not repeated, and a volume that has grown since is as large as it is', async () => {
    let isOpen = true;
    const ids: string[] = [];
    const watched = (driver: PlatformDriver): PlatformDriver => ({
      ...driver,
      restart: async (ref, id, cookie) => {
        ids.push(id);
        return driver.restart(ref, id, cookie);
      },
    });
    const probe: SshProbe = {
      probe: async () =>
        isOpen
          ? { ok: true, hostKeyFingerprint: 'SHA256:test' }
          : { ok: false, step: 'connect', detail: 'connection refused' },
    };
    await using first = await startFirst({ wrapDriver: watched, probe });
    const id = await make(first);
    const volume = await makeVolume(first);
    isOpen = false;
    await first.request('POST', `/x/instances/${id}/restart`);
    await until('it is carried out', () => ids.length > 0);
    const restore = await backUp(first);
    isOpen = true;
    const restarting = async () => (await first.request('GET', `/x/instances/${id}/restart`)).body;
    await until('it is over', async () => (await restarting())['restarting'] === false);
    await first.request('POST', `/x/volumes/${volume}/resize`, { body: { size_gb: 300 } });
    await until('it is larger', async () => (await volumeOf(first, `/volumes/${volume}`))['size_gb'] === 300);
    const young = await makeVolume(first);
    await first.request('POST', `/x/volumes/${young}/resize`, { body: { size_gb: 300 } });
    await until('it is larger', async () => (await volumeOf(first, `/volumes/${young}`))['size_gb'] === 300);

    ids.length = 0;
    await using restored = await restore({ wrapDriver: watched, probe });
    await until('nothing is left to do', async () => (await restored.store.read.work.of(id)) === null);
    expect([await restored.read(`/instances/${id}`), ids]).toEqual(['ONLINE', []]);
    for (const known of [volume, young]) {
      await until('it is known', async () => (await restored.read(`/volumes/${known}`)) === 'AVAILABLE');
      expect(await restored.store.read.volumes.byId(known)).toMatchObject({
        sizeGb: 300,
        priceMicroUsdPerHour: (await first.store.read.volumes.byId(known))?.priceMicroUsdPerHour,
      });
    }
  });

  it('work that the backup held waits until it is known what became of it', async () => {
    await using first = await startFirst({ platform: { boot_ms: [2_000, 2_000] } });
    const started = await make(first);
    await stop(first, started);
    const { body } = await first.request('POST', '/instances', { body: instanceRequest() });
    const restore = await backUp(first);
    await first.request('DELETE', `/instances/${body['id']}`);
    await first.waitFor(String(body['id']), 'GONE');
    await first.request('POST', `/instances/${started}/start`);
    await first.waitFor(started, 'ONLINE');
    const stops: string[] = [];
    await using restored = await restore({
      wrapDriver: (driver) => ({
        ...driver,
        // The row of the one that is gone is dealt with slowly; the work of the other is long due.
        get: async (ref) => {
          await new Promise((resolve) => setTimeout(resolve, 300));
          return driver.get(ref);
        },
        stop: (ref, cookie) => {
          stops.push(ref);
          return driver.stop(ref, cookie);
        },
      }),
      prepare: (store) =>
        store.transact(async (tx) => {
          const step = { resourceKind: 'instance', kind: 'stop', notBefore: 0, deadlineAt: null } as const;
          await tx.work.put({ resourceId: started, ...step });
        }),
    });
    await until('it is ONLINE', async () => (await restored.read(`/instances/${started}`)) === 'ONLINE');
    expect(stops).toEqual([]);
  });

  const noteOf = (machine: ObservedMachine) => JSON.parse(machine.note ?? '');
  it.each<[string, (machine: ObservedMachine) => string, RegExp]>([
    ['whose note cannot be read', () => 'of another program', /^its note cannot be read$/],
    [
      'whose account is younger than the backup',
      (machine) => JSON.stringify({ ...noteOf(machine), accountId: 'acct-late' }),
      /^there is no account acct-late$/,
    ],
  ])('a machine %s is 503 and is never reaped', async (_what, toNote, problem) => {
    await using first = await startFirst();
    const restore = await backUp(first);
    const id = await make(first);
    await using restored = await restore({
      reconcile: { orphans: 'reap', orphan_grace_s: 0.001, watch_interval_s: 0.02 },
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
    await until(
      'the mark is gone',
      async () => (await restored.store.read.marks.get('restored_from')) === null,
    );
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
      reconcile: { max_losses: { share: 0, least: 1, window_s: 3600, per_host: { share: 1, least: 1000 } } },
      wrapDriver: (driver) => ({
        ...withListing(driver, (items) => items.map(failed)),
        get: async (ref) => {
          const found = await driver.get(ref);
          return found.answer === 'observed' ? { ...found, value: failed(found.value) } : found;
        },
      }),
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

  it('a machine of another installation is not ours', async () => {
    await using first = await startFirst();
    const restore = await backUp(first);
    const foreign = await make(first);
    await using restored = await restore({
      wrapDriver: (driver) =>
        withListing(driver, (items) =>
          items.map((machine) => ({
            ...machine,
            note: JSON.stringify({ ...noteOf(machine), installation: 'other' }),
          })),
        ),
    });
    expect(await restored.read(`/instances/${foreign}`)).toBe('404');
    expect(await restored.store.read.instances.byId(foreign)).toBeNull();
    expect(await restored.store.read.marks.get('restored_from')).toBeNull();
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
    await until(
      'the mark is gone',
      async () => (await restored.store.read.marks.get('restored_from')) === null,
    );
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

describe('a row of the backup whose machine the platform does not show', () => {
  const hiding = (hidden: () => string | undefined) => (driver: PlatformDriver) => ({
    ...withListing(driver, (items) => items.filter(({ ref }) => ref !== hidden())),
    get: async (ref: string) => (ref === hidden() ? ({ answer: 'gone' } as const) : driver.get(ref)),
  });

  it('is not ended by a listing that lacks too much, and its machine is taken when it is shown', async () => {
    await using first = await startFirst({ platform: { boot_ms: [2_000, 2_000] } });
    const others = [await make(first), await make(first)];
    const { body } = await first.request('POST', '/instances', { body: instanceRequest() });
    const id = String(body['id']);
    const restore = await backUp(first);
    await first.waitFor(id, 'ONLINE');
    let isEmpty = true;
    const orders: string[] = [];
    await using restored = await restore({
      wrapDriver: (driver) => ({
        ...withListing(driver, (items) => (isEmpty ? [] : items)),
        get: async (ref) => (isEmpty ? { answer: 'gone' } : driver.get(ref)),
        create: async (spec, cookie) => {
          orders.push('create');
          return driver.create(spec, cookie);
        },
        destroy: async (ref, cookie) => {
          orders.push('destroy');
          return driver.destroy(ref, cookie, anOrder);
        },
      }),
      prepare: (store) =>
        store.transact(async (tx) => {
          await tx.instances.byId(id);
          const work = await tx.work.of(id);
          if (work !== null) await tx.work.put({ ...work, deadlineAt: 1 });
        }),
    });
    await until('it logs what waits', () =>
      restored.lines.some(({ message }) => /their work waits/.test(message)),
    );
    expect(await restored.read(`/instances/${id}`)).toBe('PROVISIONING');
    isEmpty = false;
    await until('it is ONLINE', async () => (await restored.read(`/instances/${id}`)) === 'ONLINE');
    for (const other of others) expect(await restored.read(`/instances/${other}`)).toBe('ONLINE');
    expect(orders).toEqual([]);
    await until('it logs that all work continues', () =>
      restored.lines.some(({ message }) => /all work continues/.test(message)),
    );
  });

  it('is not stopped when it was started since: it becomes ONLINE when it is shown', async () => {
    await using first = await startFirst();
    const id = await make(first);
    const others = [await make(first), await make(first)];
    await stop(first, id);
    const restore = await backUp(first);
    await first.request('POST', `/instances/${id}/start`);
    await first.waitFor(id, 'ONLINE');
    let isEmpty = true;
    const stops: string[] = [];
    await using restored = await restore({
      reconcile: { watch_interval_s: 0.05 },
      wrapDriver: (driver) => ({
        ...withListing(driver, (items) => (isEmpty ? [] : items)),
        get: async (ref) => (isEmpty ? { answer: 'gone' } : driver.get(ref)),
        stop: async (ref, cookie) => {
          stops.push(ref);
          return driver.stop(ref, cookie);
        },
      }),
    });
    isEmpty = false;
    await until('it is ONLINE', async () => (await restored.read(`/instances/${id}`)) === 'ONLINE');
    for (const other of others) expect(await restored.read(`/instances/${other}`)).toBe('ONLINE');
    expect(stops).toEqual([]);
  });

  it('holds back only its own work while the look at it fails', async () => {
    await using first = await startFirst();
    const id = await make(first);
    await stop(first, id);
    // With a third, the listing does not lack all that it should have.
    const [other] = [await make(first), await make(first)];
    const restore = await backUp(first);
    let isAway = true;
    const hide = hiding(() => (isAway ? `berth-${id}` : undefined));
    await using restored = await restore({
      wrapDriver: (driver) => ({
        ...hide(driver),
        get: async (ref) =>
          isAway && ref === `berth-${id}` ? { answer: 'unknown', reason: 'test' } : driver.get(ref),
      }),
    });
    await restored.send('DELETE', `/instances/${other}`);
    await until('the other is gone', async () => (await restored.read(`/instances/${other}`)) === '404');
    expect(await restored.read(`/instances/${id}`)).toBe('STOPPED');
    expect(await restored.store.read.marks.get('restored_from')).not.toBeNull();
    const waits = restored.lines.filter(({ message }) => /their work waits/.test(message));
    expect(waits).toMatchObject([{ fields: { count: 1, instances: [id], volumes: false } }]);
    isAway = false;
    await until(
      'the mark is gone',
      async () => (await restored.store.read.marks.get('restored_from')) === null,
    );
    expect(restored.lines.some(({ message }) => /all work continues/.test(message))).toBe(true);
  });

  it('holds back no instance while the volumes cannot be listed', async () => {
    await using first = await startFirst();
    const restore = await backUp(first);
    await using restored = await restore({
      wrapDriver: (driver) => ({
        ...driver,
        ...(driver.volumes && {
          volumes: {
            ...driver.volumes,
            list: async () => ({ answer: 'unknown', reason: 'test' }) as const,
          },
        }),
      }),
    });
    const id = await restored.send('POST', '/instances', instanceRequest());
    await until('it is ONLINE', async () => (await restored.read(`/instances/${id}`)) === 'ONLINE');
    const waits = restored.lines.filter(({ message }) => /their work waits/.test(message));
    expect(waits).toMatchObject([{ fields: { count: 0, volumes: true } }]);
  });
});
