import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import { openHostShell } from './host-shell.ts';

const awkward = ["it's", '$(id)', 'a b', '', '`x`', '"', '; exit 9', '*'];

/** An `ssh` that says how it was called, then runs the command line as a login shell over there would. */
function useSsh(script: string): void {
  const bin = mkdtempSync(join(tmpdir(), 'berth-ssh-'));
  writeFileSync(join(bin, 'ssh'), `#!/bin/sh\n${script}\n`);
  chmodSync(join(bin, 'ssh'), 0o755);
  vi.stubEnv('PATH', `${bin}:${process.env['PATH']}`);
  onTestFinished(() => {
    vi.unstubAllEnvs();
    rmSync(bin, { recursive: true });
  });
}

it.each(['qemu:///system', 'qemu+unix:///system?socket=/run/x'])(
  'a script gets its arguments by %s',
  async (uri) => {
    const shell = openHostShell({ name: 'kvm-1', uri });
    const output = await shell.run(`for a; do printf '<%s>' "$a"; done; echo oh >&2; exit 3`, awkward);
    expect(output).toEqual({ status: 3, stdout: awkward.map((one) => `<${one}>`).join(''), stderr: 'oh\n' });
  },
);

it('and the same by way of OpenSSH, to the user, port and key of the URI', async () => {
  useSsh(
    `while [ "$1" != -- ]; do printf '%s ' "$1" >&2; shift; done; printf '%s' "$2" >&2; exec sh -c "$3"`,
  );
  const shell = openHostShell({
    name: 'kvm-2',
    uri: 'qemu+ssh://berth@kvm-2.example:2222/system?keyfile=/etc/k',
  });
  const output = await shell.run(`for a; do printf '<%s>' "$a"; done; exit 3`, awkward);
  expect(output.status).toBe(3);
  expect(output.stdout).toBe(awkward.map((one) => `<${one}>`).join(''));
  expect(output.stderr).toContain('-o BatchMode=yes');
  expect(output.stderr).toContain('-l berth -p 2222 -i /etc/k kvm-2.example');
});

it('a host that OpenSSH does not reach has not answered', async () => {
  useSsh('echo "ssh: connect to host kvm-2 port 22: No route to host" >&2; exit 255');
  const shell = openHostShell({ name: 'kvm-2', uri: 'qemu+ssh://kvm-2/system' });
  await expect(shell.run('true', [])).rejects.toMatchObject({
    problem: 'unreachable',
    message: expect.stringContaining('No route'),
  });
});

it('nor has one that takes too long', async () => {
  const shell = openHostShell({ name: 'kvm-1', uri: 'qemu:///system' });
  await expect(shell.run('kill -9 $$', [])).rejects.toMatchObject({ problem: 'unreachable' });
});
