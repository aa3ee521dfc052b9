import { describe, expect, it, onTestFinished } from 'vitest';
import { startPlainOrchestrator } from '../../../../test/support/plain-orchestrator.ts';
import { instance } from '../../../../test/support/rows/orchestrator-rows.ts';
import { instanceRequest, volumeRequest } from '../../../../test/support/rows/requests.ts';
import { VirtualClock } from '../../../../test/support/time/virtual-clock.ts';
import { digestSecret } from '../../../keys/api-key.ts';
import { systemRandom } from '../../../runtime/system.ts';
import { openMemoryStore } from '../../../store/sqlite/store.ts';
import { createAccount, createKey, ensureAccess, setPassword } from '../../accounts/accounts.ts';
import { Authenticator } from '../../accounts/authenticate.ts';
import { deleteAccount } from './close-account.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

async function start() {
  const berth = await startPlainOrchestrator();
  const { orchestrator, clock } = berth;
  const deps = { store: orchestrator.store, clock };
  return {
    berth,
    deps,
    status: async () => (await orchestrator.request('GET', '/configurations')).status,
    account: () => orchestrator.store.read.credentials.accountByName('default'),
  };
}

describe('an account that is deleted', () => {
  it('gets nothing by a create whose key was seen valid before [create-after-close]', async () => {
    const { berth, deps, status } = await start();
    await using _ = berth;
    expect(await status()).toBe(200);
    await deleteAccount(deps, 'default', { drain: false });
    // A server may cache the key for two more seconds.
    expect(await berth.post('/instances', instanceRequest())).toMatchObject({ status: 401 });
    expect(await berth.post('/volumes', volumeRequest())).toMatchObject({ status: 401 });
    expect(await deps.store.read.instances.countByAccount()).toEqual([]);
  });

  it('gets nothing by a create with BERTH_API_KEY that was seen valid before [create-after-close-environment]', async () => {
    const environmentKey = { digest: digestSecret('the-environment-key'), accountId: '' };
    await using berth = await startPlainOrchestrator(() => 'none', { environmentKey });
    const { orchestrator, clock } = berth;
    environmentKey.accountId = orchestrator.account.id;
    const deps = { store: orchestrator.store, clock };
    const by = { key: 'the-environment-key' };
    // The account's row is kept for the row of its former instance.
    const id = await berth.create();
    await orchestrator.request('DELETE', `/instances/${id}`);
    await berth.passUntil(`/instances/${id}`, 'GONE');
    expect((await orchestrator.request('GET', '/configurations', by)).status).toBe(200);
    expect(await deleteAccount(deps, 'default', { drain: false })).toMatchObject({ isDeleted: false });
    const create = { ...by, body: instanceRequest() };
    expect((await orchestrator.request('POST', '/instances', create)).status).toBe(401);
    expect(await deps.store.read.instances.countByAccount()).toEqual([]);
  });

  it('is refused where there is none of the name', async () => {
    const { berth, deps } = await start();
    await using _ = berth;
    await expect(deleteAccount(deps, 'nobody', { drain: true })).rejects.toThrow(/no account "nobody"/);
  });

  it('loses its instances, then its volumes, and its row when no row of theirs is kept [account-deleted]', async () => {
    const { berth, deps, account } = await start();
    await using _ = berth;
    const id = await berth.create();
    await berth.passUntil(`/instances/${id}`, 'ONLINE');
    await berth.createVolume();
    await berth.clock.advance(MINUTE_MS);
    const end = (drain: boolean) => deleteAccount(deps, 'default', { drain });
    await expect(end(false)).rejects.toThrow(/has 1 instance:/);
    expect(await end(true)).toEqual({ instances: 1, volumes: 1, isDeleted: false });
    await berth.clock.advance(MINUTE_MS);
    await expect(end(false)).rejects.toThrow(/has 1 volume:/);
    expect(await end(true)).toEqual({ instances: 0, volumes: 1, isDeleted: false });
    await berth.clock.advance(MINUTE_MS);
    expect(berth.platform.volumes.size).toBe(0);
    expect(await end(false)).toEqual({ instances: 0, volumes: 0, isDeleted: false });
    expect(await account()).toMatchObject({ closedAt: expect.any(Number) });
    const parts = { ...deps, random: systemRandom };
    const doors = [
      () => createKey(parts, 'default'),
      () => setPassword(parts, 'default', 'a long password'),
      () => ensureAccess(parts, undefined).then(({ apiKey }) => Promise.reject(new Error(`key ${apiKey}`))),
    ];
    await expect(doors[0]?.()).rejects.toThrow(/was permanently deleted at 20.* and cannot get a key/);
    await expect(doors[1]?.()).rejects.toThrow(/was permanently deleted/);
    await expect(doors[2]?.()).rejects.toThrow('key null');
    await expect(createAccount(parts, 'default')).rejects.toThrow(/name "default" stays reserved/);
    expect(await deps.store.read.credentials.listKeys()).toMatchObject([{ revokedAt: expect.any(Number) }]);
    await deps.store.transact(async (tx) => {
      for (const resources of [tx.instances, tx.volumes])
        await resources.prune({ platform: 'default', endedBefore: deps.clock.now() + DAY_MS, limit: 10 });
    });
    await berth.clock.advance(MINUTE_MS);
    expect(await account()).toBeNull();
    await createAccount(parts, 'default');
    const { key } = await createKey(parts, 'default');
    expect((await berth.orchestrator.request('GET', '/configurations', { key })).status).toBe(200);
  });

  it('is not opened by BERTH_API_KEY, and neither is another in its place [environment-key-of-closed]', async () => {
    const store = openMemoryStore();
    onTestFinished(() => store.close());
    const parts = { store, clock: new VirtualClock(), random: systemRandom };
    const digest = digestSecret('the-environment-key');
    const { accountId = '' } = await ensureAccess(parts, digest);
    await createAccount(parts, 'other');
    const authenticator = new Authenticator({
      ...parts,
      environmentKey: { digest, accountId: String(accountId) },
    });
    const knock = () => authenticator.authenticate('Bearer the-environment-key');
    expect(await knock()).toMatchObject({ accountId });
    await store.transact(async (tx) => {
      await tx.instances.insert(
        instance('a', { accountId: String(accountId), status: 'DESTROYED', createOpenUntil: null }),
      );
    });
    await deleteAccount(parts, 'default', { drain: false });
    await expect(knock()).rejects.toMatchObject({ code: 'unauthorized' });
    expect(await ensureAccess(parts, digest)).toEqual({ apiKey: null, accountId: null });
    await store.transact((tx) =>
      tx.instances.prune({ platform: 'default', endedBefore: Number.MAX_SAFE_INTEGER, limit: 10 }),
    );
    await store.transact((tx) => tx.credentials.deleteClosedAccounts());
    expect(await store.read.credentials.accountByName('default')).toBeNull();
    expect(await ensureAccess(parts, digest)).toEqual({ apiKey: null, accountId: null });
  });
});
