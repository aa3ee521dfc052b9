import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { makeFolder } from './ledger-file.ts';

it('makes all that is missing, for the owner only, and takes what is there', () => {
  const root = mkdtempSync(join(tmpdir(), 'berth-folder-'));
  onTestFinished(() => rmSync(root, { recursive: true }));
  const folder = join(root, 'a', 'b');
  makeFolder(folder);
  makeFolder(folder);
  expect(statSync(folder).mode & 0o777).toBe(0o700);
});

it('comes back from where no folder can be', () => {
  expect(() => makeFolder('/proc/berth/conformance')).toThrow('ENOENT');
});
