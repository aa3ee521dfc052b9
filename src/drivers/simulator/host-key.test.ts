import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import ssh2 from 'ssh2';
import { expect, it } from 'vitest';
import { generateHostKey } from './host-key.ts';
import { Workstation } from './simulator.fixture.ts';

it('makes only keys that a server can load', () => {
  // One in 256 was malformed: the chance to miss that in so many is below one in 10,000.
  const keys = Array.from({ length: 2500 }, generateHostKey);
  expect(keys.filter((key) => ssh2.utils.parseKey(key.privateKey) instanceof Error)).toEqual([]);
});

it('tells the fingerprint as ssh-keygen does', () => {
  const user = new Workstation();
  const { privateKey, fingerprint } = generateHostKey();
  writeFileSync(join(user.directory, 'host'), privateKey, { mode: 0o600 });
  const printed = execFileSync('ssh-keygen', ['-l', '-f', join(user.directory, 'host')]).toString();
  user.close();
  expect(printed).toContain(` ${fingerprint} `);
});
