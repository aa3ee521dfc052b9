import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished, vi } from 'vitest';

/** Replaces `ssh` with this `sh` script for the rest of the test. */
export function useSsh(script: string): void {
  const bin = mkdtempSync(join(tmpdir(), 'berth-ssh-'));
  writeFileSync(join(bin, 'ssh'), `#!/bin/sh\n${script}\n`);
  chmodSync(join(bin, 'ssh'), 0o755);
  vi.stubEnv('PATH', `${bin}:${process.env['PATH']}`);
  onTestFinished(() => {
    vi.unstubAllEnvs();
    rmSync(bin, { recursive: true });
  });
}
