import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import ssh2 from 'ssh2';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { VirtualClock } from '../../../../test/support/time/virtual-clock.ts';
import type { Endpoint, PlatformDriver } from '../../../orchestrator/model/platform-driver.ts';
import { createSimulator } from '../platform/simulator.ts';
import { doneValue, endpointOf, instantly, machineSpec, Workstation } from '../simulator.fixture.ts';

const keyKinds: [string, string[]][] = [
  ['ed25519', ['-t', 'ed25519']],
  ['ecdsa-256', ['-t', 'ecdsa', '-b', '256']],
  ['ecdsa-384', ['-t', 'ecdsa', '-b', '384']],
  ['ecdsa-521', ['-t', 'ecdsa', '-b', '521']],
  ['rsa', ['-t', 'rsa', '-b', '2048']],
];
let user: Workstation;
let sshKeys: string[];
let driver: PlatformDriver;
let clock: VirtualClock;
let endpoint: Endpoint;

beforeAll(() => {
  user = new Workstation();
  sshKeys = keyKinds.map(([name, options]) => user.makeKey(name, ...options));
  user.makeKey('stranger', '-t', 'ed25519');
});
afterAll(() => user.close());

beforeEach(async () => {
  clock = new VirtualClock();
  const capacity = [{ offerId: 'h100', datacenter: 'fra', units: 1, spot: false }];
  driver = await createSimulator({ stateFile: ':memory:', capacity, platform: instantly }, clock);
  const spec = machineSpec({ sshKeys });
  endpoint = endpointOf(doneValue(await driver.create(spec, null)));
});
afterEach(async () => {
  await driver.close();
  expect(clock.pendingTimers, 'timers left behind').toBe(0);
});

describe("OpenSSH's ssh", () => {
  it.each(keyKinds)('logs in with an %s key', async (name) => {
    expect(await user.ssh(endpoint, name, ['whoami'])).toEqual({ status: 0, stdout: 'ubuntu\n', stderr: '' });
  });

  it('is refused with a key that was not injected', async () => {
    const outcome = await user.ssh(endpoint, 'stranger', ['whoami']);
    expect(outcome).toMatchObject({
      status: 255,
      stderr: expect.stringContaining('Permission denied (publickey)'),
    });
  });

  it('is refused as another user', async () => {
    expect(await user.ssh(endpoint, 'ed25519', ['whoami'], { username: 'root' })).toMatchObject({
      status: 255,
    });
  });

  it('is refused with RSA over SHA-1', async () => {
    const sha1 = ['-o', 'PubkeyAcceptedAlgorithms=ssh-rsa', 'whoami'];
    expect(await user.ssh(endpoint, 'rsa', sha1)).toMatchObject({ status: 255 });
  });

  it('returns the exit status, the output and the errors', async () => {
    expect(await user.ssh(endpoint, 'ed25519', ['nope; echo out; exit 7'])).toEqual({
      status: 7,
      stdout: 'out\n',
      stderr: 'bash: nope: command not found\n',
    });
  });

  it('sends its input to the command', async () => {
    const outcome = await user.ssh(endpoint, 'ed25519', ['cat > note && cat note'], {
      input: 'over the wire\n',
    });
    expect(outcome).toMatchObject({ status: 0, stdout: 'over the wire\n' });
  });

  it('has an interactive shell on a pty, with echo, prompt and line editing', async () => {
    const input = 'echo oops\u007f\u007f\u007f\u007fyes\rnproc\rexit 3\r';
    const { status, stdout } = await user.ssh(endpoint, 'ed25519', ['-tt'], { input });
    expect(status).toBe(3);
    expect(stdout).toContain('ubuntu@gpu-1:~$ ');
    expect(stdout).toMatch(/yes\r\n(.|\n)*yes\r\n/);
    expect(stdout).toMatch(/8\r$/m);
    expect(stdout).toMatch(/logout\r\n$/);
  });

  it('ends an interactive shell with Ctrl-D, and a command with Ctrl-C', async () => {
    const { status, stdout } = await user.ssh(endpoint, 'ed25519', ['-tt'], {
      input: 'sleep 600\r\u0003\u0004',
    });
    expect(status).toBe(130);
    expect(stdout).toContain('^C\r\n');
  });

  it('ends an interactive shell at the end of input, after the typed commands have run', async () => {
    expect(await user.ssh(endpoint, 'ed25519', ['-tt'], { input: '' })).toMatchObject({ status: 0 });
    expect(await user.ssh(endpoint, 'ed25519', ['-tt'], { input: 'false\r' })).toMatchObject({ status: 1 });
  });

  it('runs a script that is piped to a shell without a pty', async () => {
    const outcome = await user.ssh(endpoint, 'ed25519', ['-T'], { input: 'cd /tmp\npwd\nfalse\n' });
    expect(outcome).toEqual({ status: 1, stdout: '/tmp\n', stderr: '' });
  });

  it('is refused a subsystem and a forwarding', async () => {
    expect(await user.ssh(endpoint, 'ed25519', ['-s', 'sftp'])).toMatchObject({
      status: 255,
      stderr: expect.stringContaining('subsystem request failed'),
    });
    expect(await user.ssh(endpoint, 'ed25519', ['-W', '127.0.0.1:1'])).toMatchObject({ status: 255 });
  });

  it('loses its connection when the machine is stopped', async () => {
    const sleeping = user.ssh(endpoint, 'ed25519', ['echo ready > /tmp/ready; sleep 600']);
    await expect.poll(() => user.ssh(endpoint, 'ed25519', ['cat /tmp/ready'])).toMatchObject({ status: 0 });
    doneValue(await driver.stop('berth-1', null));
    expect(await sleeping).toMatchObject({ status: 255 });
  });
});

it('ends the command of a session that is closed while its connection stays', async () => {
  const client = new ssh2.Client();
  const privateKey = readFileSync(join(user.directory, 'ed25519'));
  client.connect({
    host: endpoint.publicIp,
    port: endpoint.sshPort,
    username: endpoint.sshUsername,
    privateKey,
  });
  await once(client, 'ready');
  const channel = await new Promise<ssh2.ClientChannel>((resolve, reject) => {
    client.exec('sleep 600', (error, opened) => (error ? reject(error) : resolve(opened)));
  });
  await expect.poll(() => clock.pendingTimers).toBe(1);
  channel.close();
  await expect.poll(() => clock.pendingTimers).toBe(0);
  client.end();
  await once(client, 'close');
});

it('does not block the platform with thousands of commands in many sessions', async () => {
  const delays = monitorEventLoopDelay({ resolution: 10 });
  delays.enable();
  const input = 'ls / /etc /home;'.repeat(240);
  const floods = Array.from({ length: 8 }, () => user.ssh(endpoint, 'ed25519', ['-T'], { input }));
  for (const { status, stdout } of await Promise.all(floods))
    expect({ status, lines: stdout.split('\n').length > 2_000 }).toEqual({ status: 0, lines: true });
  delays.disable();
  expect(delays.max / 1e6).toBeLessThan(1_000);
});

describe('a client that connects and sends nothing', () => {
  it('is cut off after the login grace time', async () => {
    const socket = connect(endpoint.sshPort, endpoint.publicIp);
    socket.resume();
    await once(socket, 'data');
    const closed = once(socket, 'close');
    await clock.advance(29_999);
    expect(socket.closed).toBe(false);
    await clock.advance(1);
    await closed;
  });

  it('is cut off at that time too if it sends a little at times', async () => {
    const socket = connect(endpoint.sshPort, endpoint.publicIp);
    await once(socket.resume(), 'data');
    // A packet that takes hours to arrive.
    socket.write('SSH-2.0-slow\r\n');
    socket.write(Buffer.from([0, 0, 0x7f, 0xfc]));
    const trickle = setInterval(() => socket.write('x'), 5_000);
    const begun = performance.now();
    await once(socket, 'close');
    clearInterval(trickle);
    const tookMs = performance.now() - begun;
    expect(tookMs).toBeGreaterThan(25_000);
    expect(tookMs).toBeLessThan(40_000);
  });

  it('does not delay the close of the platform', async () => {
    const socket = connect(endpoint.sshPort, endpoint.publicIp);
    await once(socket.resume(), 'data');
    await Promise.all([driver.close(), once(socket, 'close')]);
  });
});
