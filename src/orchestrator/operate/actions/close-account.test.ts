import { describe, expect, it } from 'vitest';
import { startPlainOrchestrator } from '../../../../test/support/fakes/plain-orchestrator.ts';
import { instanceRequest, volumeRequest } from '../../../../test/support/http/requests.ts';
import { systemRandom } from '../../../runtime/system.ts';
import { createKey } from '../../accounts/accounts.ts';
import { deleteAccount, disableAccount } from './close-account.ts';

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

describe('an account that is disabled', () => {
  it('can do nothing until it has a new key; with instances it is refused, or these are deleted [account-disabled]', async () => {
    const { berth, deps, status } = await start();
    await using _ = berth;
    const id = await berth.create();
    await berth.passUntil(`/instances/${id}`, 'ONLINE');
    await expect(disableAccount(deps, 'default', { drain: false })).rejects.toThrow(/has 1 instance: delete/);
    expect(await status()).toBe(200);
    expect(await disableAccount(deps, 'default', { drain: true })).toEqual({ instances: 1 });
    await berth.clock.advance(MINUTE_MS);
    expect(await status()).toBe(401);
    expect((await deps.store.read.instances.byId(id))?.status).toBe('DESTROYED');
    expect(berth.platform.machines.size).toBe(0);
    const { key } = await createKey({ ...deps, random: systemRandom }, 'default');
    expect((await berth.orchestrator.request('GET', '/configurations', { key })).status).toBe(200);
  });

  it.each(['disableAccount', 'deleteAccount'] as const)(
    'gets nothing by a create whose key was seen valid before %s [create-after-close]',
    async (end) => {
      const { berth, deps, status } = await start();
      await using _ = berth;
      expect(await status()).toBe(200);
      await { disableAccount, deleteAccount }[end](deps, 'default', { drain: false });
      // A server may remember the key for two seconds more.
      expect(await berth.post('/instances', instanceRequest())).toMatchObject({ status: 401 });
      expect(await berth.post('/volumes', volumeRequest())).toMatchObject({ status: 401 });
      expect(await deps.store.read.instances.countByAccount()).toEqual([]);
    },
  );

  it('is refused where there is none of the name', async () => {
    const { berth, deps } = await start();
    await using _ = berth;
    for (const end of [disableAccount, deleteAccount])
      await expect(end(deps, 'nobody', { drain: true })).rejects.toThrow(/no account "nobody"/);
  });
});

describe('an account that is deleted', () => {
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
    expect(await account()).not.toBeNull();
    await deps.store.transact(async (tx) => {
      for (const resources of [tx.instances, tx.volumes])
        await resources.prune({ platform: 'default', endedBefore: deps.clock.now() + DAY_MS, limit: 10 });
    });
    expect(await end(false)).toEqual({ instances: 0, volumes: 0, isDeleted: true });
    expect(await account()).toBeNull();
  });
});
