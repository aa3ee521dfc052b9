import { execFileSync } from 'node:child_process';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { failFastWhileSilent, openHost } from './client.ts';
import { VirshError } from './errors.ts';
import { someHostOptions } from './host-options.fixture.ts';
import { openHostShell, openLogin } from './hosts/host-shell.ts';
import { useSsh } from './hosts/use-ssh.fixture.ts';

/** A host whose `virsh` is this `sh` script. */
function openHostOf(script: string, uri = 'qemu:///system'): ReturnType<typeof openHost> {
  const folder = mkdtempSync(join(tmpdir(), 'berth-virsh-test-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const program = join(folder, 'virsh');
  writeFileSync(program, `#!/bin/sh\n${script}\n`);
  chmodSync(program, 0o755);
  const options = someHostOptions({ uri });
  const login = openLogin(options);
  onTestFinished(() => login.close());
  return openHost(options, login, program);
}

it('keeps the secrets of Berth out of the environment of virsh and of the host shell', async () => {
  for (const name of ['BERTH_WEBHOOK_SECRET', 'BERTH_DATABASE_URL', 'PGPASSWORD'])
    vi.stubEnv(name, 'a-secret');
  vi.stubEnv('SSH_AUTH_SOCK', '/run/agent');
  onTestFinished(() => void vi.unstubAllEnvs());
  const printed = await openHostOf('env').virsh(['list']);
  const { stdout } = await openHostShell({ name: 'kvm-1', uri: 'qemu:///system' }).run('env', []);
  for (const environment of [printed, stdout]) {
    expect(environment).toContain('SSH_AUTH_SOCK=/run/agent');
    expect(environment).toMatch(/^PATH=/m);
    expect(environment).not.toContain('a-secret');
  }
});

it('runs OpenSSH without password prompts', async () => {
  useSsh('exit 0');
  const asked = (uri: string) => openHostOf('echo "$3"', uri).virsh(['list']);
  expect(await asked('qemu+ssh://kvm-2/system')).toMatch(
    /^qemu\+ssh:\/\/kvm-2\/system\?no_tty=1&command=\S+\n$/,
  );
  // If the operator's URI has a command, Berth keeps no login.
  expect(await asked('qemu+ssh://kvm-2/system?command=/usr/bin/ssh')).toBe(
    'qemu+ssh://kvm-2/system?command=/usr/bin/ssh&no_tty=1\n',
  );
  expect(await asked('qemu:///system')).toBe('qemu:///system\n');
});

it('kills a hanging virsh and its child processes', async () => {
  const hanging = openHostOf('sleep 300 & sleep 300').virsh(['list'], { timeoutMs: 300 });
  await expect(hanging).rejects.toMatchObject({ problem: 'unreachable' });
});

it('does not take a host for silent whose libvirt waits for a domain, and asks nothing twice meanwhile', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'berth-virsh-test-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  execFileSync('mkfifo', [join(folder, 'lock')]);
  const waits = `cd ${folder}; [ "$4" = hostname ] && exec echo kvm-1; echo "$5" >>asked; [ "$5" = b ] || [ -e free ] || read -r line <lock`;
  const host = openHostOf(`${waits}; echo of "$5"`);
  onTestFinished(() => host.close());
  const ask = (name: string, withinMs: number) => host.virsh(['dumpxml', name], { withinMs });
  for (const _ of [1, 2]) await expect(ask('a', 50)).rejects.toMatchObject({ problem: 'late' });
  expect(await ask('b', 60_000)).toBe('of b\n');
  expect(readFileSync(join(folder, 'asked'), 'utf8')).toBe('a\nb\n');
  // The lock of the domain is free again.
  writeFileSync(join(folder, 'free'), '');
  writeFileSync(join(folder, 'lock'), '\n');
  await expect.poll(() => ask('a', 60_000).catch(() => 'late')).toBe('of a\n');
});

it('kills a virsh that writes without end', async () => {
  await expect(openHostOf('exec cat /dev/zero').virsh(['list'])).rejects.toThrow('more than 64 MiB');
});

describe('a host that does not answer calls', () => {
  it('is probed in the background, and calls fail at once until it answers', async () => {
    const answers: PromiseWithResolvers<void>[] = [];
    const call = failFastWhileSilent('kvm-1', () => {
      const answer = Promise.withResolvers<void>();
      answers.push(answer);
      return answer.promise;
    });
    const silence = new VirshError('unreachable', 'no answer within 15000 ms');
    let asked = 0;
    const ask = () => call(async () => `${++asked}`);
    const settled = () => new Promise(setImmediate);
    await expect(call(() => Promise.reject(silence))).rejects.toBe(silence);
    for (const _ of [1, 2]) await expect(ask()).rejects.toThrow('kvm-1 does not answer: no answer within');
    expect([asked, answers.length]).toEqual([0, 1]);
    answers[0]?.reject(silence);
    await settled();
    await expect(ask()).rejects.toMatchObject({ problem: 'unreachable' });
    expect([asked, answers.length]).toEqual([0, 2]);
    answers[1]?.resolve();
    await settled();
    expect(await Promise.all([ask(), ask()])).toEqual(['1', '2']);
  });

  it('is not assumed when libvirt refuses a request', async () => {
    const call = failFastWhileSilent('kvm-1', () => Promise.reject());
    const refusal = new VirshError('no_domain', 'none');
    await expect(call(() => Promise.reject(refusal))).rejects.toBe(refusal);
    expect(await Promise.all([call(async () => 1), call(async () => 2)])).toEqual([1, 2]);
  });
});
