import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { testState } from './state.suite.ts';
import { openState } from './state.ts';

describe('the state in SQLite', () => {
  let folder = '';
  let count = 0;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'berth-monitor-state-'));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  testState(async () => `sqlite:${join(folder, `${++count}.db`)}`);

  it('refuses a file that is not a database, and says what to do', async () => {
    const path = join(folder, 'text');
    writeFileSync(path, 'this is text, and long enough to be looked at as a database header of SQLite');
    await expect(openState(`sqlite:${path}`)).rejects.toThrow(/cannot be opened .*: name a file/);
  });
});
