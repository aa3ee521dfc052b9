import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import type { Call } from '../../../orchestrator/model/platform-driver.ts';
import { Change } from '../change.ts';
import { openHost } from '../client.ts';
import { someHostOptions } from '../host-options.fixture.ts';
import { readHostFacts } from './host-facts.ts';
import { openHostShell, openLogin } from './host-shell.ts';
import { useSsh } from './use-ssh.fixture.ts';

const clock = { now: () => 1_000, setTimer: () => ({ cancel: () => {} }) };

/** A host whose `virsh` is this `sh` script, run in its own folder, and calls with a claim on a machine. */
function aHost(script: string, uri = 'qemu:///system') {
  const folder = mkdtempSync(join(tmpdir(), 'berth-guard-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const program = join(folder, 'virsh');
  writeFileSync(program, `#!/bin/sh\ncd '${folder}'\n[ "$1" = -q ] && shift 3\n${script}\n`);
  chmodSync(program, 0o755);
  const options = someHostOptions({ uri, state_dir: join(folder, 'state') });
  const login = openLogin(options);
  onTestFinished(() => login.close());
  const host = openHost(options, login, program);
  const change = (fence: number, call: Partial<Call> = {}) =>
    new Change(clock, 'berth-a.machine', {
      deadline: 2_000,
      fence,
      signal: new AbortController().signal,
      ...call,
    });
  const fences = join(folder, 'state/fences');
  const done = (): string[] =>
    existsSync(join(folder, 'log')) ? readFileSync(join(folder, 'log'), 'utf8').trim().split('\n') : [];
  return { host: { ...host, shell: openHostShell(options, login) }, folder, fences, change, done };
}

const LOG = 'echo "$@" >> log';

it('the host rejects a command after a later claim was seen', async () => {
  const { host, change, done, fences } = aHost(LOG);
  await change(7).virsh(host, ['start', 'a']);
  await change(7).virsh(host, ['start', 'b']);
  await change(12).virsh(host, ['start', 'c']);
  const late = change(7);
  await expect(late.virsh(host, ['start', 'd'])).rejects.toMatchObject({ problem: 'stale' });
  expect(late.hasChanged).toBe(false);
  expect(done()).toEqual(['start a', 'start b', 'start c']);
  expect(readFileSync(join(fences, 'berth-a.machine'), 'utf8')).toBe(`${'12'.padStart(20, '0')}\n`);
});

it('does not block another machine, or a person without a claim', async () => {
  const { host, change, done } = aHost(LOG);
  await change(7).virsh(host, ['start', 'a']);
  const call = { deadline: 2_000, fence: 1, signal: new AbortController().signal };
  await new Change(clock, 'berth-b.machine', call).virsh(host, ['start', 'b']);
  await new Change(clock, 'berth-a.machine', undefined).virsh(host, ['start', 'c']);
  expect(done()).toEqual(['start a', 'start b', 'start c']);
});

it('commands for one machine run one after another, and each sees the fence of those before it', async () => {
  const { host, change, done } = aHost('echo "+ $2" >> log; sleep 0.1; echo "- $2" >> log');
  const each = [3, 5, 4, 9, 1].map((fence) =>
    change(fence)
      .virsh(host, ['start', String(fence)])
      .then(
        () => fence,
        () => -fence,
      ),
  );
  const ended = await Promise.all(each);
  const ran = done().map((line) => line.split(' '));
  // Each command ends before the next begins, and fences increase.
  const order = ran.flatMap(([sign, fence]) => (sign === '+' ? [Number(fence)] : []));
  expect(ran.map(([, fence]) => fence)).toEqual(order.flatMap((fence) => [String(fence), String(fence)]));
  expect(order).toEqual(order.toSorted((a, b) => a - b));
  expect(ended.filter((fence) => fence > 0).toSorted()).toEqual(order.toSorted());
});

it('passes standard input to the command, locally and through OpenSSH', async () => {
  const here = aHost('cat /dev/stdin > read');
  await here.change(1).virsh(here.host, ['define', '/dev/stdin'], { input: '<domain/>' });
  expect(readFileSync(join(here.folder, 'read'), 'utf8')).toBe('<domain/>');
  // Runs the command line as a remote login shell would.
  useSsh('while [ "$1" != -- ]; do shift; done; exec sh -c "$3"');
  const there = aHost('cat /dev/stdin > read; echo "$@" >> log', 'qemu+ssh://kvm-2/system');
  await there.change(1).virsh(there.host, ['define', "it's", '/dev/stdin'], { input: '<domain/>' });
  expect(readFileSync(join(there.folder, 'read'), 'utf8')).toBe('<domain/>');
  expect(there.done()).toEqual(["define it's /dev/stdin"]);
  await expect(there.change(0).virsh(there.host, ['start', 'a'])).rejects.toMatchObject({ problem: 'stale' });
});

it('runs the virsh of the host, with its local URI', async () => {
  useSsh('while [ "$1" != -- ]; do shift; done; exec sh -c "$3"');
  const asked = async (uri: string) => {
    const { host, change, folder } = aHost('', uri);
    writeFileSync(join(folder, 'virsh'), '#!/bin/sh\necho "$3"\n');
    return (await change(1).virsh(host, ['start', 'a'])).trim();
  };
  expect(await asked('qemu+ssh://root@kvm-2:2222/system?keyfile=/etc/k')).toBe('qemu:///system');
  expect(await asked('qemu+ssh://kvm-2/system?socket=/run/x')).toBe('qemu+unix:///system?socket=/run/x');
});

it('a stop ends its own run of the machine, and not the next one', async () => {
  const { host, change, done } = aHost('[ "$1" = domid ] && echo 7 || echo "$@" >> log');
  const cut = (id: string) => change(1).virsh(host, ['destroy', '--', id], { run: { uuid: 'u', id } });
  await expect(cut('6')).rejects.toMatchObject({ problem: 'not_running' });
  expect(done()).toEqual([]);
  await cut('7');
  expect(done()).toEqual(['destroy -- 7']);
});

it('starts nothing after the deadline or after the call is cancelled', async () => {
  const { host, change, done } = aHost(LOG);
  for (const call of [{ deadline: 999 }, { signal: AbortSignal.abort() }]) {
    const late = change(1, call);
    await expect(late.virsh(host, ['start', 'a'])).rejects.toMatchObject({ problem: 'expired' });
    expect(late.hasChanged).toBe(false);
  }
  expect(done()).toEqual([]);
});

it('a cancelled call settles only when all its processes have ended', async () => {
  const { host, change, folder } = aHost(
    // Each process inherits the lock.
    'exec 8> running; flock 8; echo $$ > pid; sleep 300 & sleep 300',
  );
  const giving = new AbortController();
  const call = change(1, { signal: giving.signal });
  const running = call.virsh(host, ['start', 'a']);
  await expect.poll(() => existsSync(join(folder, 'pid'))).toBe(true);
  giving.abort();
  await expect(running).rejects.toMatchObject({ problem: 'aborted' });
  expect(call.hasChanged).toBe(true);
  execFileSync('sh', ['-c', 'flock -n "$0" true', join(folder, 'running')]);
  // The lock of the machine was released with it.
  await expect(change(2, { deadline: 999 }).virsh(host, ['start'])).rejects.toMatchObject({
    problem: 'expired',
  });
});

it('a host that cannot store fences changes nothing', async () => {
  const { host, change, done, folder } = aHost(LOG);
  writeFileSync(join(folder, 'state'), 'a file is in the way');
  await expect(change(1).virsh(host, ['start'])).rejects.toMatchObject({ problem: 'unprepared' });
  expect(done()).toEqual([]);
});

it('fences are removed when they are older than a day', async () => {
  const { host, change, fences } = aHost('');
  await change(1).virsh(host, ['start', 'a']);
  const call = { deadline: 2_000, fence: 1, signal: new AbortController().signal };
  await new Change(clock, 'berth-b.machine', call).virsh(host, ['start', 'b']);
  const before = Date.now() / 1000 - 25 * 3600;
  utimesSync(join(fences, 'berth-a.machine'), before, before);
  await readHostFacts(host.shell, { stateDir: host.options.state_dir });
  expect(readdirSync(fences)).toEqual(['berth-b.machine']);
});

it('a host without virsh or flock reports it', async () => {
  const { host } = aHost('');
  const bin = mkdtempSync(join(tmpdir(), 'berth-bin-'));
  onTestFinished(() => {
    vi.unstubAllEnvs();
    rmSync(bin, { recursive: true });
  });
  for (const tool of ['sh', 'date', 'grep', 'dirname', 'find']) {
    const path = execFileSync('sh', ['-c', `command -v ${tool}`], { encoding: 'utf8' }).trim();
    symlinkSync(path, join(bin, tool));
  }
  vi.stubEnv('PATH', bin);
  const missing = async () => (await readHostFacts(host.shell, { stateDir: host.options.state_dir })).missing;
  for (const tool of ['flock', 'virsh']) {
    expect(await missing()).toBe(tool);
    writeFileSync(join(bin, tool), '#!/bin/sh\n', { mode: 0o755 });
  }
  expect(await missing()).toBeUndefined();
});
