import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, it } from 'vitest';
import { VirtualClock } from '../../../../test/support/time/virtual-clock.ts';
import { generateHostKey } from '../../kit/host-key.ts';
import { instantly, machineSpec } from '../simulator.fixture.ts';
import { createSimulator } from './simulator.ts';
import { rootDisk, type SimulatedMachine, SimulatorState } from './state.ts';

const hostKey = generateHostKey();

function machine(number: number): SimulatedMachine {
  const spec = machineSpec({ ref: `berth-${number}` });
  const fresh = {
    power: 'building',
    until: null,
    bootFails: false,
    holdsUnit: true,
    bootedAt: null,
  } as const;
  const guest = { sshListens: true, sshPort: null, sshHostKey: hostKey, cloudInitUntil: null, runcmdDone: 0 };
  return { spec, number, createdAt: 0, boots: 1, reclaimAt: null, ...fresh, ...guest };
}

it('writes as much for one machine beside thousands as for the first', () => {
  const folder = mkdtempSync(join(tmpdir(), 'berth-state-'));
  const path = join(folder, 'state.db');
  const state = new SimulatorState(path);
  const other = new Database(path);
  const bytesOf = (number: number): number => {
    other.pragma('wal_checkpoint(TRUNCATE)');
    state.machine(undefined, machine(number));
    return statSync(`${path}-wal`).size;
  };
  const first = bytesOf(0);
  for (let number = 1; number < 3_000; number++) state.machine(undefined, machine(number));
  // Allows for a tree that is some levels of pages deeper.
  expect(bytesOf(3_000)).toBeLessThanOrEqual(first + 10 * 4_200);
  expect([...state.load().machines]).toHaveLength(3_001);
  state.close();
  other.close();
  rmSync(folder, { recursive: true });
});

it('drops what a guest wrote while its machine was removed and the process ended', () => {
  const folder = mkdtempSync(join(tmpdir(), 'berth-state-'));
  const open = () => new SimulatorState(join(folder, 'state.db'));
  const before = open();
  const file = { content: 'late', mode: 0o644, user: 'root', group: 'root' };
  before.machine(undefined, machine(1));
  for (const ref of ['berth-1', 'berth-gone']) before.writeFile(rootDisk(ref), '/late', file);
  before.close();
  const after = open();
  after.load();
  const found = ['berth-1', 'berth-gone'].map((ref) => after.readFile(rootDisk(ref), '/late')?.content);
  expect(found).toEqual(['late', undefined]);
  after.close();
  rmSync(folder, { recursive: true });
});

it('keeps a disowned machine with its disk, and shows neither after a restart', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'berth-state-'));
  const stateFile = join(folder, 'state.db');
  const clock = new VirtualClock();
  const capacity = [{ offerId: 'h100', datacenter: 'fra', units: 1, spot: false }];
  const open = () => createSimulator({ stateFile, capacity, platform: instantly }, clock);
  const ref = 'berth-a';
  const first = await open();
  await first.create(machineSpec({ ref }), null);
  await first.stop(ref, null);
  expect(await first.disown?.(ref, null)).toEqual({ outcome: 'done', value: null });
  await first.close();
  const second = await open();
  expect([await second.get(ref), await second.list()]).toEqual([
    { answer: 'gone' },
    { answer: 'listed', items: [] },
  ]);
  expect(await second.inventory?.()).toMatchObject({ free: [{ units: 1 }], counted: [] });
  await second.close();
  const state = new SimulatorState(stateFile);
  expect([...state.load().machines].map(({ spec }) => spec.ref)).toEqual([ref]);
  state.close();
  const db = new Database(stateFile, { readonly: true });
  const { files } = db.prepare('SELECT count(*) AS files FROM files WHERE disk = ?').get(rootDisk(ref)) as {
    files: number;
  };
  expect(files).toBeGreaterThan(0);
  db.close();
  rmSync(folder, { recursive: true });
});
