import { describe, expect, it } from 'vitest';
import { accountId, instance } from '../../../test/support/rows/orchestrator-rows.ts';
import type { InstanceRecord } from '../model/records.ts';
import type { CommitListener, InstanceReader, Store } from '../model/store.ts';
import { PolledReads } from './polled-reads.ts';

/** Later states have a higher version, as in a real store. */
const versions = { PROVISIONING: 1, ONLINE: 2, DESTROYING: 3, DESTROYED: 4 };

const record = (status: keyof typeof versions, id = 'a'): InstanceRecord =>
  instance(id, { status, version: versions[status], createOpenUntil: null });

/** A store whose reads the test answers. */
function slowStore() {
  let listener: CommitListener = {};
  let isFeedLive = true;
  const reads: ((found: InstanceRecord | null) => void)[] = [];
  const byId = () => new Promise<InstanceRecord | null>((resolve) => reads.push(resolve));
  const readsOfMany: { ids: readonly string[]; answer: (found: InstanceRecord[]) => void }[] = [];
  const byIds = (ids: readonly string[]) =>
    new Promise<InstanceRecord[]>((answer) => readsOfMany.push({ ids, answer }));
  const store = {
    read: { instances: { byId, byIds } as unknown as InstanceReader },
    isCommitFeedLive: () => isFeedLive,
    subscribe: (added: CommitListener) => {
      listener = added;
      return () => undefined;
    },
  } as unknown as Store;
  return {
    store,
    reads,
    readsOfMany,
    commit: (...records: InstanceRecord[]) => listener.instancesChanged?.(records),
    missCommits: () => listener.commitsMissed?.(),
    setFeedLive: (value: boolean) => {
      isFeedLive = value;
    },
  };
}

const statusOf = (reply: { body: string } | undefined) =>
  reply === undefined ? undefined : JSON.parse(reply.body).status;

describe('prepared replies', () => {
  it('follow every commit and go with DESTROYED', () => {
    const { store, commit } = slowStore();
    const polled = new PolledReads(store);
    commit(record('PROVISIONING'));
    expect(statusOf(polled.cached('a'))).toBe('PROVISIONING');
    commit(record('ONLINE'));
    expect(statusOf(polled.cached('a'))).toBe('ONLINE');
    commit(record('DESTROYED'));
    expect(polled.cached('a')).toBeUndefined();
  });

  it('are not kept from a read that a commit overtook: a destroyed instance never comes back to life', async () => {
    const { store, reads, commit } = slowStore();
    const polled = new PolledReads(store);
    const reading = polled.get(accountId, 'a');
    commit(record('DESTROYED'));
    reads[0]?.(record('DESTROYING'));
    expect(statusOf(await reading)).toBe('DESTROYING');
    expect(polled.cached('a')).toBeUndefined();
  });

  it('are kept from a read that nothing overtook', async () => {
    const { store, reads } = slowStore();
    const polled = new PolledReads(store);
    const reading = polled.get(accountId, 'a');
    reads[0]?.(record('ONLINE'));
    await reading;
    expect(statusOf(polled.cached('a'))).toBe('ONLINE');
  });

  it('are given to their own account only', async () => {
    const { store, reads, commit } = slowStore();
    const polled = new PolledReads(store);
    commit(record('ONLINE'));
    const foreign = polled.get('other', 'a');
    reads[0]?.(record('ONLINE'));
    await expect(foreign).rejects.toMatchObject({ code: 'not_found' });
  });

  it('are bounded, dropping the oldest first; a missing one proves nothing', () => {
    const { store, commit } = slowStore();
    const polled = new PolledReads(store, 2);
    for (const id of ['a', 'b', 'c']) commit(record('ONLINE', id));
    expect(['a', 'b', 'c'].map((id) => polled.cached(id) !== undefined)).toEqual([false, true, true]);
  });

  it('are the newest version reported, in any order', () => {
    const { store, commit } = slowStore();
    const polled = new PolledReads(store);
    commit(record('ONLINE'));
    commit(record('PROVISIONING'));
    expect(statusOf(polled.cached('a'))).toBe('ONLINE');
    commit(record('DESTROYED'));
    commit(record('DESTROYING'));
    expect(polled.cached('a')).toBeUndefined();
  });

  it('go when commits of other processes were missed, and a read from before is not kept', async () => {
    const { store, reads, commit, missCommits } = slowStore();
    const polled = new PolledReads(store);
    commit(record('ONLINE', 'b'));
    const reading = polled.get(accountId, 'a');
    missCommits();
    reads[0]?.(record('ONLINE'));
    expect(statusOf(await reading)).toBe('ONLINE');
    expect([polled.cached('a'), polled.cached('b')]).toEqual([undefined, undefined]);
  });

  it('are not used while commits of other processes do not arrive', async () => {
    const { store, reads, commit, setFeedLive } = slowStore();
    const polled = new PolledReads(store);
    commit(record('PROVISIONING'));
    setFeedLive(false);
    expect(polled.cached('a')).toBeUndefined();
    const reading = polled.get(accountId, 'a');
    reads[0]?.(record('ONLINE'));
    expect(statusOf(await reading)).toBe('ONLINE');
    setFeedLive(true);
    expect(statusOf(polled.cached('a'))).toBe('ONLINE');
  });

  it('do not come back from a read that began before the destroyed instance was forgotten', async () => {
    const { store, reads, commit } = slowStore();
    const polled = new PolledReads(store, 1);
    const reading = polled.get(accountId, 'a');
    commit(record('DESTROYED'));
    commit(record('ONLINE', 'b'));
    reads[0]?.(record('ONLINE'));
    await reading;
    expect(polled.cached('a')).toBeUndefined();
  });
});

describe('prepared replies of a list', () => {
  const statusesOf = (bodies: readonly string[]) =>
    (JSON.parse(`[${bodies.join()}]`) as { id: string; status: string }[]).map(
      ({ id, status }) => `${id} ${status}`,
    );

  it('are the bodies of the polled reads in the requested order', async () => {
    const { store, commit, readsOfMany } = slowStore();
    const polled = new PolledReads(store);
    commit(record('ONLINE', 'a'), record('PROVISIONING', 'b'));
    const replies = await Promise.all([polled.get(accountId, 'b'), polled.get(accountId, 'a')]);
    expect(await polled.bodiesOf(['b', 'a'])).toEqual(replies.map(({ body }) => body));
    expect([await polled.bodiesOf([]), readsOfMany]).toEqual([[], []]);
  });

  it('are read from the store where they are missing, at once, and kept', async () => {
    const { store, commit, readsOfMany } = slowStore();
    const polled = new PolledReads(store);
    commit(record('ONLINE', 'b'));
    const joining = polled.bodiesOf(['a', 'b', 'c']);
    readsOfMany[0]?.answer([record('DESTROYED', 'c'), record('ONLINE', 'a')]);
    expect(statusesOf(await joining)).toEqual(['a ONLINE', 'b ONLINE']);
    expect(readsOfMany.map(({ ids }) => ids)).toEqual([['a', 'c']]);
    expect(statusOf(polled.cached('a'))).toBe('ONLINE');
  });

  it('show a commit that comes while rows are read, also if the feed was down before', async () => {
    const { store, commit, readsOfMany, setFeedLive } = slowStore();
    const polled = new PolledReads(store);
    commit(record('ONLINE', 'b'));
    setFeedLive(false);
    const joining = polled.bodiesOf(['a', 'b']);
    setFeedLive(true);
    commit(record('DESTROYING', 'b'));
    readsOfMany[0]?.answer([record('ONLINE', 'a'), record('ONLINE', 'b')]);
    expect(statusesOf(await joining)).toEqual(['a ONLINE', 'b DESTROYING']);
  });

  it('are never older than a polled read: a commit that overtakes the rows counts', async () => {
    const { store, commit, readsOfMany } = slowStore();
    const polled = new PolledReads(store);
    const joining = polled.bodiesOf(['a', 'b', 'c']);
    commit(record('ONLINE', 'a'), record('DESTROYED', 'b'));
    const rows = ['a', 'b', 'c'].map((id) => record('PROVISIONING', id));
    readsOfMany[0]?.answer(rows);
    expect(statusesOf(await joining)).toEqual(['a ONLINE', 'c PROVISIONING']);
  });

  it('include a reply that was prepared but dropped while the others were read', async () => {
    const { store, commit, missCommits, readsOfMany } = slowStore();
    const polled = new PolledReads(store);
    commit(record('ONLINE', 'b'));
    const joining = polled.bodiesOf(['a', 'b', 'c']);
    missCommits();
    readsOfMany[0]?.answer([record('ONLINE', 'a')]);
    await new Promise((resolve) => setImmediate(resolve));
    readsOfMany[1]?.answer([record('DESTROYING', 'b')]);
    expect(statusesOf(await joining)).toEqual(['a ONLINE', 'b DESTROYING']);
    expect(readsOfMany.map(({ ids }) => ids)).toEqual([['a', 'c'], ['b']]);
  });

  it('are all read from the store while commits of other processes do not arrive', async () => {
    const { store, commit, readsOfMany, setFeedLive } = slowStore();
    const polled = new PolledReads(store);
    commit(record('PROVISIONING', 'a'));
    setFeedLive(false);
    const joining = polled.bodiesOf(['a']);
    readsOfMany[0]?.answer([record('ONLINE', 'a')]);
    expect(statusesOf(await joining)).toEqual(['a ONLINE']);
  });
});
