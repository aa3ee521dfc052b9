import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Ledger } from './ledger.ts';
import {
  defaultStateFolder,
  openLedgerFile,
  readLedger,
  readOpenLedgers,
  readStateFolder,
  reopenLedgerFile,
} from './ledger-file.ts';
import { livenessOf, thisProcess } from './process-identity.ts';

const RUN_ID = 'abcd012345';
let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'berth-ledger-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

const run = {
  line: 'run',
  runId: RUN_ID,
  baseUrl: 'https://h.example/v1',
  startedAt: '2026-01-01T00:00:00Z',
} as const;

describe('a ledger on the disk', () => {
  it('reads as it was written, with the process whose it is', () => {
    const file = openLedgerFile(folder, RUN_ID);
    file.append(run);
    const ledger = new Ledger({ file, runId: RUN_ID, wall: () => 7 });
    const first = ledger.intend({ type: 'instance', step: 'a/b', region: 'eu', pricePerHour: 0.5 });
    ledger.made(first, 'i-1');
    ledger.refused(ledger.intend({ type: 'volume', step: 'c' }));
    const stored = readLedger(file.path);
    expect(stored).toMatchObject({
      runId: RUN_ID,
      baseUrl: run.baseUrl,
      process: thisProcess(),
      unreadable: [],
    });
    expect(stored?.entries).toEqual(ledger.entries);
    expect(readOpenLedgers(folder)).toHaveLength(1);
    ledger.gone(first);
    ledger.close();
    file.close();
    expect(readOpenLedgers(folder)).toEqual([]);
  });

  it('can be read by its owner alone', () => {
    const file = openLedgerFile(join(folder, 'new'), RUN_ID);
    expect(statSync(file.path).mode & 0o077).toBe(0);
    expect(statSync(join(folder, 'new')).mode & 0o077).toBe(0);
    file.close();
  });

  it('buys nothing that cannot be written down, and bears what cannot be written of it later', () => {
    symlinkSync('/dev/full', join(folder, `${RUN_ID}.ndjson`));
    const file = openLedgerFile(folder, RUN_ID);
    expect(() => file.append(run)).toThrow(/cannot be written \(the disk is full\): make room/);
    const ledger = new Ledger({ file, runId: RUN_ID, wall: () => 7 });
    expect(() => ledger.intend({ type: 'instance', step: 'a' })).toThrow(
      /cannot be written \(the disk is full\): make room/,
    );
    const [entry] = ledger.entries;
    if (entry === undefined) throw new Error('it is not in the ledger');
    expect(() => ledger.gone(entry)).not.toThrow();
    file.close();
  });

  it('is gone on with on a line of its own after a line that was cut off', () => {
    const path = join(folder, `${RUN_ID}.ndjson`);
    writeFileSync(path, `${JSON.stringify(run)}\n{"line":"entr`);
    const file = reopenLedgerFile(path);
    file.append({ line: 'closed' });
    file.close();
    expect(readFileSync(path, 'utf8')).toMatch(/\n\{"line":"entr\n\{"line":"closed"\}\n$/);
    expect(readLedger(path)).toMatchObject({ unreadable: [2], isClosed: true });
  });

  it('that cannot be read hides no other, and is named where something was asked for', () => {
    const entry = { line: 'entry', entry: { n: 1, type: 'volume', state: 'made', id: 'v-1' } };
    const torn = join(folder, 'torn.ndjson');
    writeFileSync(torn, `{"line":"ru\n${JSON.stringify(entry)}\n`);
    mkdirSync(join(folder, 'folder.ndjson'));
    writeFileSync(join(folder, 'none.ndjson'), '{"line":"ru');
    const file = openLedgerFile(folder, RUN_ID);
    file.append(run);
    new Ledger({ file, runId: RUN_ID, wall: () => 7 }).intend({ type: 'instance', step: 'a' });
    file.close();
    const { open, unreadable } = readStateFolder(folder);
    expect(open.map(({ runId }) => runId)).toEqual([RUN_ID]);
    expect(unreadable.map(({ path }) => path).toSorted()).toEqual([join(folder, 'folder.ndjson'), torn]);
  });

  it('is none where the first line is not that of a run', () => {
    for (const text of ['', '\n', '{"line":"closed"}\n', '[1]\n', 'x'])
      writeFileSync(join(folder, `${RUN_ID}.ndjson`), text);
    expect(readOpenLedgers(folder)).toEqual([]);
  });
});

it('ledgers are kept below the folder that the system has for state', () => {
  expect(defaultStateFolder({ XDG_STATE_HOME: '/state' })).toBe('/state/berth/conformance');
  expect(defaultStateFolder({ XDG_STATE_HOME: '' })).toMatch(/\/\.local\/state\/berth\/conformance$/);
});

it('distinguishes a process from a later one with the same number, and from processes of other hosts', () => {
  const own = thisProcess();
  expect(livenessOf(own)).toBe('alive');
  expect(livenessOf({ ...own, startedAt: 'before' })).toBe('ended');
  expect(livenessOf({ ...own, pid: 2 ** 22 + 1 })).toBe('ended');
  expect(livenessOf({ ...own, host: 'elsewhere' })).toBe('elsewhere');
});
