import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { VirtualClock } from '../../../../test/support/clocks/virtual-clock.ts';
import { SimulatorState } from './state.ts';

it('leaves nothing of a deleted disk in any file, ten seconds later and without a stop', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'berth-state-'));
  const path = join(folder, 'state.db');
  const clock = new VirtualClock();
  const state = new SimulatorState(path, clock);
  const secret = 'what-nobody-may-find';
  const isIn = (file: string): boolean => readFileSync(file).includes(secret);
  const file = { kind: 'file', mode: 0o644, user: 'root', group: 'root', modifiedAt: 0 } as const;
  state.writeFile('disk', '/srv/a', { ...file, content: secret.repeat(1_000) });
  expect(isIn(`${path}-wal`)).toBe(true);
  state.deleteDisk('disk');
  await clock.advance(10_000);
  expect([isIn(path), statSync(`${path}-wal`).size]).toEqual([false, 0]);
  state.close();
  rmSync(folder, { recursive: true });
});
