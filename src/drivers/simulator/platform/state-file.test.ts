import { existsSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { VirtualClock } from '../../../../test/support/time/virtual-clock.ts';
import { InUse } from '../../../ports/errors.ts';
import { createSimulator } from './simulator.ts';
import { assertStateFree, takeStateLock } from './state-file.ts';

let folder: string;
let stateFile: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'berth-lock-'));
  stateFile = join(folder, 'simulator.db');
});
afterEach(() => rmSync(folder, { recursive: true }));

const open = (file = stateFile) => createSimulator({ stateFile: file, capacity: [] }, new VirtualClock());

it('lets one process at a time run the machines of a state, under any name of the file', async () => {
  const first = await open();
  const alias = join(folder, 'alias.db');
  symlinkSync(stateFile, alias);
  await expect(open()).rejects.toThrow(InUse);
  await expect(open(alias)).rejects.toThrow(InUse);
  expect(() => assertStateFree(stateFile)).toThrow(InUse);
  await first.close();
  assertStateFree(stateFile);
  await (await open(alias)).close();
});

it('creates no file to check whether a state is free', () => {
  assertStateFree(stateFile);
  assertStateFree(join(folder, 'none', 'simulator.db'));
  expect(existsSync(`${stateFile}.lock`)).toBe(false);
});

it('releases the lock when the state cannot be opened', async () => {
  takeStateLock(join(folder, 'x'))();
  await expect(open(folder)).rejects.toThrow();
  takeStateLock(folder)();
});
