import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { Workstation } from '../simulator.fixture.ts';
import { generateHostKey } from './host-key.ts';

it('prints the fingerprint like ssh-keygen', () => {
  const user = new Workstation();
  const { privateKey, fingerprint } = generateHostKey();
  writeFileSync(join(user.directory, 'host'), privateKey, { mode: 0o600 });
  const printed = execFileSync('ssh-keygen', ['-l', '-f', join(user.directory, 'host')]).toString();
  user.close();
  expect(printed).toContain(` ${fingerprint} `);
});
