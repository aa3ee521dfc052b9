import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, expect, it, vi } from 'vitest';
import { generateKeyPair } from '../../../../test/support/processes/openssh.ts';
import { startOpenSshServer } from '../../../ssh/openssh-server.fixture.ts';
import { Change } from '../change.ts';
import { openHost as libvirtOf } from '../client.ts';
import { someHostOptions } from '../host-options.fixture.ts';
import { type Login, openHostShell, openLogin } from './host-shell.ts';

const ends: (() => unknown)[] = [];
afterEach(async () => {
  vi.unstubAllEnvs();
  for (const end of ends.splice(0).reverse()) await end();
});

/** A host with its own sshd; `ssh` ignores this machine's configuration of other hosts. */
async function openHost() {
  const folder = mkdtempSync(join(tmpdir(), 'berth-login-'));
  ends.push(() => rmSync(folder, { recursive: true }));
  const key = await generateKeyPair(folder, 'ed25519');
  const server = await startOpenSshServer([key.publicKey]);
  ends.push(() => server.close());
  const ssh = execFileSync('sh', ['-c', 'command -v ssh'], { encoding: 'utf8' }).trim();
  const known = `-o UserKnownHostsFile=${folder}/known -o StrictHostKeyChecking=accept-new`;
  writeFileSync(join(folder, 'ssh'), `#!/bin/sh\nexec ${ssh} -F /dev/null ${known} "$@"\n`);
  chmodSync(join(folder, 'ssh'), 0o755);
  vi.stubEnv('PATH', `${folder}:${process.env['PATH']}`);
  const uri = `qemu+ssh://${server.username}@127.0.0.1:${server.port}/system?keyfile=${key.file}`;
  const login = openLogin({ name: 'kvm-2', uri });
  ends.push(() => login.close());
  const program = join(folder, 'virsh');
  writeFileSync(program, `#!/bin/sh\nshift 3\n"$@"\n`);
  chmodSync(program, 0o755);
  const options = someHostOptions({ name: 'kvm-2', uri, state_dir: join(folder, 'state') });
  return {
    login,
    host: libvirtOf(options, login, program),
    run: async (line: string) =>
      (await openHostShell({ name: 'kvm-2', uri }, login).run(line, [])).stdout.trim(),
    logins: () => server.log().split('Accepted publickey').length - 1,
  };
}

/** The program that virsh runs in place of `ssh`. */
const programOf = ({ uri }: Login): string => new URL(uri).searchParams.get('command') ?? '';

it('all calls of a host share one login, which leaves nothing behind', async () => {
  const { login, run, logins } = await openHost();
  expect(await Promise.all([run('echo one'), run('echo two')])).toEqual(['one', 'two']);
  // Called as libvirt does: the host in the arguments is not logged in to again.
  const argv = ['-T', '-e', 'none', '--', '127.0.0.1', 'echo three'];
  expect(execFileSync(programOf(login), argv, { encoding: 'utf8' })).toBe('three\n');
  expect(logins()).toBe(1);
  await login.close();
  expect(existsSync(dirname(programOf(login)))).toBe(false);
});

it('a killed login is opened again', async () => {
  const { login, run, logins } = await openHost();
  await run('true');
  const socket = join(dirname(programOf(login)), 'way');
  const said = execFileSync('sh', ['-c', '"$0" -O check kvm-2 2>&1', programOf(login)], { encoding: 'utf8' });
  process.kill(Number(/pid=(\d+)/.exec(said)?.[1]), 'SIGKILL');
  expect(existsSync(socket)).toBe(true);
  expect(await run('echo again')).toBe('again');
  expect(logins()).toBe(2);
});

it('a command with a claim runs on the host, and reads its input there', async () => {
  const { host } = await openHost();
  const clock = { now: () => 1, setTimer: () => ({ cancel: () => {} }) };
  const change = (fence: number) => {
    const { signal } = new AbortController();
    return new Change(clock, 'berth-a.machine', { deadline: 2, fence, signal });
  };
  const input = '<domain/>\n'.repeat(50_000);
  expect(await change(2).virsh(host, ['cat', '/dev/stdin'], { input })).toBe(input);
  await expect(change(1).virsh(host, ['true'])).rejects.toMatchObject({ problem: 'stale' });
});
