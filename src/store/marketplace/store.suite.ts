import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  apiKey,
  deployment,
  mail,
  now,
  providerId,
  seed,
  team,
  teamId,
  user,
  userId,
  volume,
} from '../../../test/support/rows/marketplace-rows.ts';
import type { CatalogRecord } from '../../marketplace/model/catalog-record.ts';
import { Duplicate, type Store, type Transaction } from '../../marketplace/model/store.ts';
import type { LeaseRecord } from '../../work/lease.ts';
import { describeAlarms } from '../alarms.suite.ts';
import { describeFigures } from '../figures.suite.ts';
import { describeOperators } from '../operators.suite.ts';
import { describeLedger } from './ledger.suite.ts';
import { describeOperatorViews } from './operator-views.suite.ts';
import { describePeople } from './people.suite.ts';
import { describeResources } from './resources.suite.ts';

export interface StoreOfSuite {
  setup: () => Promise<Store>;
  teardown: (store: Store) => Promise<void>;
}

/** The requirements for every marketplace store. `setup` creates an empty one. */
export function describeMarketplaceStore(name: string, { setup, teardown }: StoreOfSuite): void {
  describe(name, () => {
    let store: Store;
    beforeEach(async () => {
      store = await setup();
      await seed(store);
    });
    afterEach(() => teardown(store));
    const write = <T>(body: (tx: Transaction) => Promise<T>): Promise<T> => store.transact(body);

    it('closes once, however often close is called', async () => {
      await Promise.all([store.close(), store.close()]);
      await store.close();
    });

    describe('transactions', () => {
      it('keep all or nothing', async () => {
        const broken = write(async (tx) => {
          await tx.deployments.insert(deployment());
          throw new Error('broken off');
        });
        await expect(broken).rejects.toThrow('broken off');
        expect(await store.read.deployments.byId('dep-1')).toBeNull();
      });

      it('show only committed data to reads outside', async () => {
        await write(async (tx) => {
          await tx.deployments.insert(deployment());
          expect(await tx.deployments.byId('dep-1')).not.toBeNull();
          expect(await store.read.deployments.byId('dep-1')).toBeNull();
        });
        expect(await store.read.deployments.byId('dep-1')).toEqual(deployment());
      });

      it('continue after one that failed', async () => {
        await write(() => Promise.reject(new Error('first'))).catch(() => undefined);
        await write((tx) => tx.deployments.insert(deployment()));
        expect(await store.read.deployments.byId('dep-1')).not.toBeNull();
      });

      const lockedBy: [string, (tx: Transaction) => Promise<unknown>][] = [
        ['a user', (tx) => tx.users.byId(userId)],
        ['a team', (tx) => tx.teams.byId(teamId)],
        ['a deployment', (tx) => tx.deployments.byId('dep-1')],
        ['a volume', (tx) => tx.volumes.byId('vol-1')],
        ['a volume, by the id of paths', (tx) => tx.volumes.byVolumeId('vvol-1')],
        ['a mail', (tx) => tx.mail.byId('mail-1')],
      ];
      it.each(lockedBy)('run one after another where they read %s by its id', async (_what, read) => {
        await write(async (tx) => {
          await tx.deployments.insert(deployment());
          await tx.volumes.insert(volume());
          await tx.mail.insert(mail());
        });
        const log: string[] = [];
        // Opens a connection for each of them before they begin.
        await Promise.all([1, 2, 3].map(() => write((tx) => tx.users.list())));
        const run = () =>
          write(async (tx) => {
            expect(await read(tx)).not.toBeNull();
            log.push('begins');
            for (let step = 0; step < 5; step++) {
              await tx.users.list();
              await new Promise((resolve) => setImmediate(resolve));
            }
            log.push('ends');
          });
        await Promise.all([run(), run(), run()]);
        expect(log).toEqual(['begins', 'ends', 'begins', 'ends', 'begins', 'ends']);
      });

      const unique: [string, (tx: Transaction) => Promise<unknown>, RegExp][] = [
        ['an e-mail address', (tx) => tx.users.insert(user({ id: 'u', email: user().email })), /users/],
        ['a slug', (tx) => tx.teams.insert(team({ id: 't', slug: team().slug })), /teams/],
        ['a key', (tx) => tx.keys.insert(apiKey({ id: 'k', digest: apiKey().digest })), /api_keys/],
        [
          'a name at the provider',
          (tx) => tx.deployments.insert(deployment({ id: 'd', providerName: deployment().providerName })),
          /deployments/,
        ],
        ['a volume id', (tx) => tx.volumes.insert(volume({ id: 'v', volumeId: 'vvol-1' })), /volumes/],
        [
          'a name of a volume at the provider',
          (tx) => tx.volumes.insert(volume({ id: 'v', providerName: volume().providerName })),
          /volumes/,
        ],
      ];
      it.each(unique)('refuse the second row with %s as a duplicate', async (_what, insert, table) => {
        await write(async (tx) => {
          await tx.keys.insert(apiKey());
          await tx.deployments.insert(deployment());
          await tx.volumes.insert(volume());
        });
        const second = write(insert);
        await expect(second).rejects.toBeInstanceOf(Duplicate);
        await expect(second).rejects.toThrow(table);
      });
    });

    describeLedger(() => store);

    describe('leases', () => {
      const claim = async (holder: string, at: number, ttlMs = 10) => {
        const [lease = null] = await write((tx) => tx.leases.claim(['job'], holder, at, ttlMs));
        return lease;
      };

      it('have one holder at a time, and are renewed under the same token', async () => {
        expect(await claim('a', now)).toEqual({ name: 'job', token: 1, holder: 'a', until: now + 10 });
        expect(await claim('b', now + 9)).toBeNull();
        expect(await claim('a', now + 9)).toMatchObject({ token: 1, until: now + 19 });
        expect(await claim('b', now + 18)).toBeNull();
        expect(await claim('b', now + 19)).toMatchObject({ token: 2, holder: 'b' });
        expect(await claim('a', now + 20)).toBeNull();
      });

      it('are granted to one of many concurrent requests', async () => {
        const holders = Array.from({ length: 20 }, (_, index) => `h${index}`);
        const answers = await Promise.all(holders.map((holder) => claim(holder, now)));
        expect(answers.filter((lease) => lease !== null)).toHaveLength(1);
      });

      it('are given back, and their next holder has a greater token', async () => {
        await claim('a', now);
        await write((tx) => tx.leases.release(['job'], 'b'));
        expect(await claim('b', now)).toBeNull();
        await write((tx) => tx.leases.release(['job'], 'a'));
        expect(await claim('a', now)).toMatchObject({ token: 2, holder: 'a' });
      });

      it('belong to their holder by token, expired or not, until another holder takes them', async () => {
        const first = await claim('a', now);
        if (first === null) throw new Error('nobody has it');
        const isHeld = (changes: Partial<LeaseRecord> = {}) =>
          write((tx) => tx.leases.isHeld({ ...first, ...changes }));
        expect([await isHeld(), await isHeld({ token: 2 }), await isHeld({ holder: 'b' })]).toEqual([
          ...[true, false, false],
        ]);
        expect(await isHeld({ name: 'another' })).toBe(false);
        await claim('b', now + 60);
        expect(await isHeld()).toBe(false);
        await write((tx) => tx.leases.release(['job'], 'b'));
        await claim('a', now + 61);
        expect([await isHeld(), await isHeld({ token: 3 })]).toEqual([false, true]);
      });

      it('are claimed, listed and released several at once, each for itself [leases-as-a-set]', async () => {
        const names = ['job', 'one', 'two'];
        await claim('a', now);
        const won = await write((tx) => tx.leases.claim(names, 'b', now, 20));
        expect(won.map(({ name }) => name).sort()).toEqual(['one', 'two']);
        const taken = async (holder: string, at: number) => {
          const leases = await write((tx) => tx.leases.taken(names, holder, at));
          return leases.map((lease) => `${lease.name} ${lease.holder}`).sort();
        };
        expect(await taken('b', now)).toEqual(['job a', 'one b', 'two b']);
        // An expired lease is listed only for its last holder.
        expect(await taken('b', now + 10)).toEqual(['one b', 'two b']);
        expect(await taken('a', now + 20)).toEqual(['job a']);
        await write((tx) => tx.leases.release(['one', 'job'], 'b'));
        expect(await taken('c', now)).toEqual(['job a', 'two b']);
      });

      it('are free if they end later than any lease can', async () => {
        await claim('a', now + 3 * 60 * 60 * 1000);
        expect(await claim('b', now)).toMatchObject({ token: 2, holder: 'b' });
      });
    });

    it('keeps the catalog of each provider as it was read', async () => {
      const configuration = {
        id: 'gpu-1',
        name: 'a NUL \0, a lone surrogate \ud800',
        instance_type: 'DEDICATED' as const,
        vcpus: 8,
        memory_gb: 64,
        storage_gb: 500,
        price_per_hour: 0.1,
        available: true,
        regions: ['eu-one'],
        supports_cloud_init: true,
        extras: { z: 1, a: { nested: null } },
      };
      const record: CatalogRecord = {
        providerId,
        version: 1,
        readAt: null,
        published: null,
        problems: ['no answer'],
      };
      expect(await store.read.catalogs.byProvider(providerId)).toBeNull();
      await write((tx) => tx.catalogs.put(record));
      expect(await store.read.catalogs.byProvider(providerId)).toEqual(record);
      const published = {
        configurations: [configuration],
        available: [],
        withdrawn: [],
        volumeLocations: [{ id: 'eu-one', name: 'EU One', types: ['ssd'] }],
      };
      const next: CatalogRecord = { ...record, version: 2, readAt: now, published, problems: [] };
      await write((tx) => tx.catalogs.put(next));
      await write((tx) => tx.catalogs.put({ ...record, providerId: 'other' }));
      await write((tx) => tx.catalogs.confirm(providerId, now + 5));
      const kept = await store.read.catalogs.byProvider(providerId);
      expect(kept).toEqual({ ...next, readAt: now + 5 });
      // A changed catalog is detected by its text.
      expect(JSON.stringify(kept?.published)).toBe(JSON.stringify(published));
      expect(new Set(await store.read.catalogs.versions())).toEqual(
        new Set([
          { providerId, version: 2, readAt: now + 5 },
          { providerId: 'other', version: 1, readAt: null },
        ]),
      );
    });

    it('keeps the first value of a setting unless it is explicitly put', async () => {
      const putIfAbsent = (value: string) => write((tx) => tx.settings.putIfAbsent('installation', value));
      const values = await Promise.all(['a', 'b', 'c'].map(putIfAbsent));
      expect(new Set(values).size).toBe(1);
      expect(await store.read.settings.get('installation')).toBe(values[0]);
      await write((tx) => tx.settings.put('installation', 'd'));
      expect(await putIfAbsent('e')).toBe('d');
      expect(await store.read.settings.get('other')).toBeNull();
    });

    it('counts requests in windows that begin with their first one', async () => {
      const count = (name: string, at: number, most?: number) =>
        store.countRequest({ name, now: at, lengthMs: 100, ...(most && { most }) });
      expect(await count('a', now)).toEqual({ count: 1, endsAt: now + 100 });
      expect(await count('a', now + 99)).toEqual({ count: 2, endsAt: now + 100 });
      expect(await count('b', now + 50)).toEqual({ count: 1, endsAt: now + 150 });
      expect(await count('a', now + 100)).toEqual({ count: 1, endsAt: now + 200 });
      const many = await Promise.all(Array.from({ length: 50 }, () => count('many', now)));
      expect(many.map((one) => one.count).sort((a, b) => a - b)).toEqual(many.map((_, index) => index + 1));
      const full = await Promise.all(Array.from({ length: 5 }, () => count('full', now, 2)));
      expect(full.map((one) => one.count).sort()).toEqual([1, 2, 3, 3, 3]);
      await store.uncountRequest({ name: 'full', endsAt: now + 100 });
      await store.uncountRequest({ name: 'full', endsAt: now + 99 });
      expect(await count('full', now + 1, 2)).toEqual({ count: 2, endsAt: now + 100 });
      expect(await count('full', now + 2, 2)).toEqual({ count: 3, endsAt: now + 100 });
      expect(await count('full', now + 100, 2)).toEqual({ count: 1, endsAt: now + 200 });
    });

    it('starts a new count if a window was begun by a clock far ahead', async () => {
      await store.countRequest({ name: 'a', now: now + 1_000_000, lengthMs: 100 });
      expect(await store.countRequest({ name: 'a', now, lengthMs: 100 })).toEqual({
        count: 1,
        endsAt: now + 100,
      });
    });

    it('a snapshot does not see commits after its first read', async () => {
      await store.snapshot(async (read) => {
        expect(await read.deployments.byId('dep-1')).toBeNull();
        await write((tx) => tx.deployments.insert(deployment()));
        expect(await read.deployments.list({})).toEqual([]);
      });
      expect(await store.read.deployments.list({})).toHaveLength(1);
      await expect(store.snapshot(() => Promise.reject(new Error('broken off')))).rejects.toThrow(
        'broken off',
      );
    });

    describeAlarms(() => store, now);

    describeOperators(() => store, now);
    describeFigures(() => store);

    describeResources(() => store);
    describePeople(() => store);
    describeOperatorViews(() => store);
  });
}
