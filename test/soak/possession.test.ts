import { expect, it } from 'vitest';
import type { Reply } from './client.ts';
import { Journal } from './journal.ts';
import { Possession } from './possession.ts';

interface Read {
  at: number;
  from: 'one' | 'two';
  /** A status of the instance, or 404. */
  shows: string | 404;
}

/** What the soak loses by these reads of an instance that was bought at 0. */
function judge(reads: readonly Read[], set: (possession: Possession) => void = () => undefined): string[] {
  const journal = new Journal(() => undefined);
  const possession = new Possession('instances', 'key', {}, journal);
  const reply = (at: number, replica: string, status: number, body: Reply['body']): Reply => ({
    ...{ replica, status, body },
    ...{ sentAt: at, receivedAt: at + 1, isRepeated: false },
  });
  possession.created(reply(0, 'one', 201, { id: 'inst-1' }));
  set(possession);
  for (const { at, from, shows } of reads)
    possession.read(shows === 404 ? reply(at, from, 404, {}) : reply(at, from, 200, { status: shows }));
  return journal.losses.map(({ what }) => what);
}

const isDeleted = (possession: Possession) => {
  possession.deleteSentAt = 50;
  possession.deleteAnsweredAt = 60;
};

it('lets a replica show the state before the one that another has shown, for three seconds', () => {
  const reads = (lateMs: number): Read[] => [
    { at: 100, from: 'one', shows: 'ONLINE' },
    { at: 101 + lateMs, from: 'two', shows: 'PROVISIONING' },
  ];
  expect(judge(reads(3_000))).toEqual([]);
  expect(judge(reads(3_001))).toEqual(['inst-1 was ONLINE and nobody touched it']);
});

it('lets a replica show what another has answered 404, for three seconds', () => {
  const reads = (lateMs: number): Read[] => [
    { at: 100, from: 'one', shows: 404 },
    { at: 101 + lateMs, from: 'two', shows: 'STOPPED' },
  ];
  expect(judge(reads(2_900), isDeleted)).toEqual([]);
  expect(judge(reads(3_001), isDeleted)).toContain('inst-1 was gone and is there again');
});

it('lets no replica go back to a state before the one that it has shown itself', () => {
  const back = (shows: string | 404, then: string): Read[] => [
    { at: 100, from: 'one', shows },
    { at: 110, from: 'one', shows: then },
  ];
  expect(judge(back('ONLINE', 'PROVISIONING'))).toEqual(['inst-1 was ONLINE and nobody touched it']);
  expect(judge(back(404, 'DESTROYING'), isDeleted)).toEqual(['inst-1 was gone and is there again']);
});
