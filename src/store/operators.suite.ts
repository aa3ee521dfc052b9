import { expect, it } from 'vitest';
import type {
  AuditReader,
  AuditWriter,
  OperatorKeyReader,
  OperatorKeyWriter,
  OperatorSessionReader,
  OperatorSessionRecord,
  OperatorSessionWriter,
} from '../operator-kit/model.ts';
import { NotBindable } from './bindable.ts';

interface StoreOfOperators {
  read: { operatorKeys: OperatorKeyReader; operatorSessions: OperatorSessionReader; audit: AuditReader };
  transact<T>(body: (tx: Writers) => Promise<T>): Promise<T>;
}
interface Writers {
  operatorKeys: OperatorKeyWriter;
  operatorSessions: OperatorSessionWriter;
  audit: AuditWriter;
}

/** Tests of operator keys and of the audit log, for the database of either product. */
export function describeOperators(storeOf: () => StoreOfOperators, now: number): void {
  it('keeps the keys of operators, and finds them by digest and id', async () => {
    const key = (id: string, at: number) => ({
      id,
      name: 'ann',
      role: 'viewer' as const,
      digest: Buffer.alloc(32, id),
      prefix: 'berthop_aa',
      lastFour: 'zzzz',
      createdAt: at,
      revokedAt: null,
      lastUsedAt: null,
    });
    await storeOf().transact((tx) => tx.operatorKeys.insert(key('op-2', now + 1)));
    await storeOf().transact((tx) => tx.operatorKeys.insert(key('op-1', now)));
    await storeOf().transact((tx) => tx.operatorKeys.revoke('op-1', now + 2));
    await storeOf().transact((tx) => tx.operatorKeys.recordUse('op-2', now + 3));
    const [first, second] = [
      { ...key('op-1', now), revokedAt: now + 2 },
      { ...key('op-2', now + 1), lastUsedAt: now + 3 },
    ];
    const { operatorKeys } = storeOf().read;
    expect(await operatorKeys.list()).toEqual([first, second]);
    expect(await operatorKeys.byDigest(second.digest)).toEqual(second);
    expect(await operatorKeys.byDigest(Buffer.alloc(32))).toBeNull();
    expect(await operatorKeys.byId('op-1')).toEqual(first);
    expect(await operatorKeys.byId('op-3')).toBeNull();
  });

  it('keeps the newest sessions of each operator key until they end', async () => {
    const session = (id: string, keyId: string, endsAt: number) => ({
      digest: Buffer.alloc(32, id),
      keyId,
      endsAt: now + endsAt,
    });
    const [a, b, c, d, e] = [
      ...([session('a', 'op-1', 1), session('b', 'op-2', 1), session('c', 'op-1', 2)] as const),
      ...([session('d', 'op-1', 3), session('e', 'op-3', 9)] as const),
    ];
    const insert = (one: OperatorSessionRecord, at: number) =>
      storeOf().transact((tx) => tx.operatorSessions.insert(one, { now: at, most: 2 }));
    const kept = () =>
      Promise.all([a, b, c, d, e].map(({ digest }) => storeOf().read.operatorSessions.byDigest(digest)));
    for (const one of [a, b, c, d]) await insert(one, now);
    expect(await kept()).toEqual([null, b, c, d, null]);
    await storeOf().transact((tx) => tx.operatorSessions.remove(c.digest));
    await insert(e, now + 1);
    expect(await kept()).toEqual([null, null, null, d, e]);
  });

  const entry = (action: string, at: number) => ({
    at,
    actor: 'ann',
    source: 'api' as const,
    address: null,
    action,
    subject: 'inst-1',
    detail: { reason: 'x', count: 2 },
    outcome: 'done' as const,
  });

  it('keeps the audit log, shows it page by page, the newest first, and prunes its oldest entries', async () => {
    for (const [index, action] of ['a', 'b', 'a'].entries())
      await storeOf().transact((tx) => tx.audit.add(entry(action, now + index)));
    const { audit } = storeOf().read;
    const [newest, middle, oldest] = await audit.page({ limit: 10 });
    expect(newest).toEqual({ id: expect.any(Number), ...entry('a', now + 2) });
    expect(await audit.page({ limit: 1, before: newest?.id ?? 0 })).toEqual([middle]);
    expect(await audit.page({ limit: 10, action: 'a', actor: 'ann', subject: 'inst-1' })).toEqual([
      newest,
      oldest,
    ]);
    expect(await audit.page({ limit: 10, actor: 'bob' })).toEqual([]);
    const between = (from: number, to: number, limit = 10) => audit.between({ from, to, limit });
    expect(await between(now, now + 1)).toEqual([middle, oldest]);
    expect(await between(now + 1, now + 9, 1)).toEqual([newest]);
    expect(await storeOf().transact((tx) => tx.audit.pruneOldest(now + 2, 1))).toBe(1);
    expect(await storeOf().transact((tx) => tx.audit.pruneOldest(now + 2, 10))).toBe(1);
    expect(await audit.page({ limit: 10 })).toEqual([newest]);
  });

  it('refuses, as a bug and not as an outage, a value that one of the databases would change or refuse [store-edge-values]', async () => {
    const store = storeOf();
    const add = (changes: object) => store.transact((tx) => tx.audit.add({ ...entry('a', now), ...changes }));
    const infinite = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, Number.NaN, 2 ** 53];
    for (const refused of [
      ...[...infinite, 0.5].map((at) => () => add({ at })),
      ...['a\0b', 'a\ud800b'].map((subject) => () => add({ subject })),
      ...infinite.map((before) => () => store.transact((tx) => tx.audit.pruneOldest(before, 1))),
      () => store.read.audit.page({ limit: 1, before: Number.NEGATIVE_INFINITY }),
    ])
      await expect(refused()).rejects.toThrow(NotBindable);
    const largest = { at: Number.MAX_SAFE_INTEGER, subject: 'é🚀\u0001', detail: { text: '"\0\ud800' } };
    await add(largest);
    expect(await store.read.audit.page({ limit: 9, subject: largest.subject })).toMatchObject([largest]);
    expect(await store.read.audit.page({ limit: 9, subject: 'a\0b' })).toEqual([]);
  });
}
