import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { generateHostKey } from './host-key.ts';

it('makes host keys that OpenSSH reads', () => {
  const folder = mkdtempSync(join(tmpdir(), 'berth-host-key-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  for (let round = 0; round < 5; round++) {
    const { privateKey, publicKey, fingerprint } = generateHostKey();
    const file = join(folder, String(round));
    writeFileSync(file, privateKey, { mode: 0o600 });
    const read = (...args: string[]) =>
      execFileSync('ssh-keygen', [...args, '-f', file], { encoding: 'utf8' });
    expect(read('-y').trim()).toBe(publicKey);
    expect(read('-l')).toContain(fingerprint);
  }
});
