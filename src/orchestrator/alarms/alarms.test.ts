import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { VirtualClock } from '../../../test/support/time/virtual-clock.ts';
import { checkDisk } from '../../operator-kit/alarms/disk.ts';
import { StoreUnavailable } from '../../ports/errors.ts';
import { openSqliteStore } from '../../store/sqlite/store.ts';
import type { Store } from '../model/store.ts';
import { Alarms, type Raised } from './alarms.ts';
import { raiseFolded } from './fold.ts';

const MINUTE_MS = 60_000;
const orphan = (subject: string): Raised => ({
  kind: 'orphan_machine',
  subject,
  platform: 'default',
  text: 'nobody knows it',
  detail: 'it is running',
});

let folder: string;
let store: Store;
let clock: VirtualClock;
let isDown: boolean;
let logged: string[];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'berth-alarms-'));
  store = openSqliteStore(join(folder, 'berth.db'));
  clock = new VirtualClock();
  isDown = false;
  logged = [];
});
afterEach(async () => {
  await store.close();
  rmSync(folder, { recursive: true });
});

/** The alarms of one server. */
function server(name = 'one'): Alarms {
  const log = { warn: () => undefined, error: (_: object, text: string) => void logged.push(text) };
  const transact: Store['transact'] = async (body) => {
    if (isDown) throw new StoreUnavailable('planted');
    return store.transact(body);
  };
  return new Alarms({ store: { read: store.read, transact }, clock, log, server: name });
}
const rows = () => store.read.alarms.list();

it('alarms are logged once and stored with their start time [alarm-row]', async () => {
  const alarms = server();
  const since = clock.now();
  alarms.raise(orphan('a'));
  await clock.advance(MINUTE_MS);
  alarms.raise({ ...orphan('a'), detail: 'it is stopped' });
  await alarms.sync();
  expect(logged).toEqual(['nobody knows it']);
  const row = {
    kind: 'orphan_machine',
    subject: 'a',
    platform: 'default',
    text: 'nobody knows it (it is stopped)',
    since,
    lastSeenAt: since + MINUTE_MS,
    acknowledgedBy: null,
    note: null,
  };
  expect(await rows()).toEqual([row]);
  expect(alarms.listOpen()).toEqual([row]);
});

it('alarms end with their cause, and are logged again when it returns', async () => {
  const alarms = server();
  alarms.raise(orphan('a'));
  alarms.end(orphan('a'));
  expect(alarms.listOpen()).toEqual([]);
  await alarms.sync();
  expect(await rows()).toEqual([]);
  alarms.raise(orphan('a'));
  expect(logged).toHaveLength(2);
});

it('alarms raised for a limited time end by themselves', async () => {
  const alarms = server();
  alarms.raise({ ...orphan('a'), forMs: MINUTE_MS });
  await clock.advance(MINUTE_MS - 1);
  await alarms.sync();
  expect(await rows()).toHaveLength(1);
  await clock.advance(1);
  await alarms.sync();
  expect(await rows()).toEqual([]);
});

it('a sweep ends all alarms of a kind on a platform except the named ones', async () => {
  const alarms = server();
  for (const subject of ['a', 'b', 'c']) alarms.raise(orphan(subject));
  alarms.raise({ ...orphan('d'), platform: 'other' });
  await alarms.sync();
  // Another server has seen the same alarms, and a later listing than the one that raised them.
  const other = server('two');
  await other.sync();
  other.endOthers('orphan_machine', 'default', new Set(['b']));
  await other.sync();
  expect((await rows()).map(({ subject }) => subject)).toEqual(['b', 'd']);
});

it('alarms are shared by all servers: one that a second server still sees stays open [alarm-of-replicas]', async () => {
  const [one, two] = [server('one'), server('two')];
  one.raise(orphan('a'));
  await one.sync();
  const [first] = await rows();
  await clock.advance(MINUTE_MS);
  two.raise(orphan('a'));
  await two.sync();
  expect(two.listOpen()).toEqual([{ ...first, lastSeenAt: clock.now() }]);
  await store.transact((tx) => tx.alarms.acknowledge(orphan('a'), 'ann', null));
  await two.sync();
  one.end(orphan('a'));
  await one.sync();
  await two.sync();
  await two.sync();
  expect(await rows()).toEqual([{ ...first, acknowledgedBy: 'ann', lastSeenAt: clock.now() }]);
  two.end(orphan('a'));
  await two.sync();
  expect(await rows()).toEqual([]);
});

it('alarms of a stopped server end some minutes after it last saw them, so that the next server can check first', async () => {
  const first = server();
  first.raise(orphan('a'));
  await first.sync();
  await clock.advance(20 * MINUTE_MS);
  const second = server();
  await second.sync();
  await second.sync();
  expect(second.listOpen()).toHaveLength(1);
  await clock.advance(10 * MINUTE_MS);
  await second.sync();
  await second.sync();
  expect(second.listOpen()).toEqual([]);
  expect(await rows()).toEqual([]);
});

it('alarms about a single event stay open for a day, even if servers stop meanwhile [alarm-outlives-server]', async () => {
  const lost: Raised = {
    kind: 'disk_lost',
    subject: 'inst-1',
    platform: 'default',
    text: 'its disk is lost',
  };
  const first = server();
  first.raise(lost);
  first.raise(orphan('a'));
  await first.sync();
  await first.close();
  const second = server('two');
  await second.sync();
  await clock.advance(11 * MINUTE_MS);
  await second.sync();
  expect((await rows()).map(({ kind }) => kind)).toEqual(['disk_lost']);
  await clock.advance(24 * 60 * MINUTE_MS);
  await second.sync();
  await second.sync();
  expect(await rows()).toEqual([]);
});

it('alarms about a repeated event stay open for a day after its last occurrence, on the server that saw it', async () => {
  const alarms = server();
  const failed: Raised = {
    kind: 'start_failed',
    subject: 'inst-1',
    platform: 'default',
    text: 'a start failed',
  };
  alarms.raise(failed);
  await alarms.sync();
  await clock.advance(23 * 60 * MINUTE_MS);
  alarms.raise(failed);
  await alarms.sync();
  expect(await rows()).toMatchObject([{ lastSeenAt: clock.now() }]);
  await clock.advance(23 * 60 * MINUTE_MS);
  await alarms.sync();
  expect(await rows()).toHaveLength(1);
  await clock.advance(2 * 60 * MINUTE_MS);
  await alarms.sync();
  expect(await rows()).toEqual([]);
});

it('alarms about a single event end for all servers when another server sees that it is over [alarm-ended-elsewhere]', async () => {
  const failed: Raised = {
    kind: 'start_failed',
    subject: 'inst-1',
    platform: 'default',
    text: 'a start failed',
  };
  const [first, second] = [server(), server('two')];
  first.raise(failed);
  await first.sync();
  await second.sync();
  second.end(failed);
  await second.sync();
  for (let rounds = 0; rounds < 3; rounds++) {
    await clock.advance(MINUTE_MS);
    await first.sync();
  }
  expect([await rows(), first.listOpen()]).toEqual([[], []]);
  first.raise(failed);
  await first.sync();
  expect(await rows()).toHaveLength(1);
});

it('alarms stay in memory while the database accepts no writes, and are stored afterwards [alarm-without-store]', async () => {
  const alarms = server();
  isDown = true;
  alarms.raise(orphan('a'));
  await alarms.sync();
  expect(await rows()).toEqual([]);
  expect(alarms.listOpen()).toHaveLength(1);
  isDown = false;
  await alarms.sync();
  expect(await rows()).toHaveLength(1);
});

it('alarms are no longer stored after close', async () => {
  const alarms = server();
  await alarms.close();
  alarms.raise(orphan('a'));
  await alarms.sync();
  expect(await rows()).toEqual([]);
});

describe('alarms of single resources', () => {
  const fields: { ref?: string; subjects?: string[] }[] = [];
  const namesIn = (lines: readonly { ref?: string; subjects?: string[] }[]) =>
    lines.flatMap(({ ref, subjects = [] }) => (ref === undefined ? subjects : [ref]));
  const refs = (count: number, from = 0) =>
    Array.from({ length: count }, (_, index) => ({ ref: `berth-${from + index}` }));
  const raise = (alarms: Alarms, items: { ref: string }[], isComplete = true): void =>
    raiseFolded(
      alarms,
      {
        kind: 'orphan_machine',
        platform: 'default',
        text: 'nobody knows it',
        subjectOf: ({ ref }) => ref,
        describe: ({ ref }) => `it is ${ref}`,
        fields: ({ ref }) => ({ ref }),
        log: {
          error: (found, text) => {
            fields.push(found);
            logged.push(text);
          },
        },
      },
      items,
      isComplete,
    );

  it('are folded into one beyond a hundred, with their number, and the log has all names [orphans-folded]', async () => {
    const alarms = server();
    raise(alarms, refs(20_000));
    await alarms.sync();
    expect([logged.length, (await rows()).length]).toEqual([101 + 19_900 / 100, 101]);
    expect((await rows()).find(({ subject }) => subject === 'default')?.text).toBe(
      `nobody knows it (20000 in all, of which 100 have their own alarm; the log names the others)`,
    );
    // Collectors of logs cut long lines.
    expect(Math.max(...fields.map((found) => JSON.stringify(found).length))).toBeLessThan(8_000);
    expect(namesIn(fields)).toEqual(refs(20_000).map(({ ref }) => ref));

    // Named alarms stay, even on a server that has just started. Others replace those that end.
    const later = server('later');
    await later.sync();
    raise(later, refs(19_000, 50).reverse());
    const named = new Set(later.listOpen().map(({ subject }) => subject));
    expect([named.size, named.has('berth-99'), named.has('berth-49')]).toEqual([101, true, false]);
    raise(later, refs(20, 90), false);
    expect(later.listOpen()).toHaveLength(101);
    raise(later, refs(20, 90));
    expect(later.listOpen()).toHaveLength(20);
  });

  it('are each named in the log once, also those that are found later', async () => {
    const alarms = server();
    const before = fields.length;
    for (const items of [refs(101), refs(103), refs(103)]) raise(alarms, items);
    raise(alarms, refs(101, 50), false);
    await alarms.sync();
    expect(namesIn(fields.slice(before))).toEqual(refs(151).map(({ ref }) => ref));
  });
});

it('a nearly full database disk raises an alarm until it clearly has space again [disk-low]', () => {
  const alarms = server();
  const size = 1e9;
  const openAlarms = (free: number) => {
    checkDisk(alarms, { free, size });
    return alarms.listOpen().map(({ kind, text }) => `${kind} ${text}`);
  };
  expect(openAlarms(0.1 * size)).toEqual([]);
  expect(openAlarms(0.09 * size)).toEqual([
    expect.stringMatching(/^disk_low .* \(90 MB of 1\.0 GB are free\)$/),
  ]);
  expect(openAlarms(0.12 * size)).toHaveLength(1);
  expect(openAlarms(0.13 * size)).toEqual([]);
  checkDisk(alarms, { free: 3e9, size: 1e12 });
  expect(alarms.listOpen()).toEqual([]);
  checkDisk(alarms, { free: 1e9, size: 1e12 });
  expect(alarms.listOpen()).toHaveLength(1);
});
