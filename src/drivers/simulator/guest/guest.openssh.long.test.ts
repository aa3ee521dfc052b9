import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { anOrder } from '../../../../test/support/rows/orchestrator-rows.ts';
import { VirtualClock } from '../../../../test/support/time/virtual-clock.ts';
import type { MachineSpec, PlatformDriver } from '../../../orchestrator/model/platform-driver.ts';
import { createSimulator } from '../platform/simulator.ts';
import {
  doneValue,
  endpointOf,
  instantly,
  machineSpec,
  type Outcome,
  observe,
  Workstation,
} from '../simulator.fixture.ts';

let user: Workstation;
let key: string;
let clock: VirtualClock;
let driver: PlatformDriver;

beforeEach(async () => {
  user = new Workstation();
  key = user.makeKey('key', '-t', 'ed25519');
  clock = new VirtualClock();
  const capacity = ['fra', 'ams'].map((datacenter) => ({
    offerId: 'h100',
    datacenter,
    units: 4,
    spot: false,
  }));
  driver = await createSimulator(
    {
      stateFile: ':memory:',
      capacity,
      platform: { ...instantly, startMs: [500, 500], restartMs: [500, 500] },
    },
    clock,
  );
});
afterEach(async () => {
  await driver.close();
  user.close();
});

async function boot(overrides: Partial<MachineSpec> = {}): Promise<void> {
  doneValue(await driver.create(machineSpec({ sshKeys: [key], ...overrides }), null));
}

async function run(command: string, ref = 'berth-1'): Promise<Outcome> {
  return user.ssh(endpointOf(await observe(driver, ref)), 'key', [command]);
}

describe('a guest shows the ordered machine', () => {
  it.each([
    ['hostname', /^gpu-1\n$/],
    ['nproc', /^8\n$/],
    ['free', /Mem: +64G/],
    ['df', /^vda +100G .* \/$/m],
    ['uname -a', /^Linux gpu-1 /],
    ['uptime', /up 0 min/],
    ['id', /^uid=1000\(ubuntu\)/],
    ['sudo whoami', /^root\n$/],
  ])('%s', async (command, expected) => {
    await boot();
    expect(await run(command)).toMatchObject({ status: 0, stdout: expect.stringMatching(expected) });
  });

  it('lists a line for each GPU, with stable ids', async () => {
    await boot();
    const { stdout } = await run('nvidia-smi -L');
    expect(stdout.trim().split('\n')).toEqual([
      expect.stringMatching(/^GPU 0: NVIDIA H100 \(UUID: GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\)$/),
      expect.stringMatching(/^GPU 1: NVIDIA H100 \(UUID: GPU-/),
    ]);
    expect((await run('nvidia-smi -L')).stdout).toBe(stdout);
  });

  it('has no nvidia-smi without a GPU', async () => {
    await boot({ gpuCount: 0, gpuType: undefined });
    expect(await run('nvidia-smi -L')).toMatchObject({
      status: 127,
      stderr: 'bash: nvidia-smi: command not found\n',
    });
  });
});

describe('cloud-init', () => {
  const cloudInit = {
    write_files: [
      { path: '/etc/app/secret', content: 'hush\n', permissions: '0600', owner: 'root:root' },
      { path: '/home/ubuntu/hello', content: 'hello\n', owner: 'ubuntu' },
    ],
    runcmd: [
      'echo from runcmd',
      'cat /etc/app/secret > /srv/copy',
      'no-such-command',
      'sleep 10',
      'echo last > /srv/last',
    ],
  };

  it('writes the files, with content, mode and owner', async () => {
    await boot({ cloudInit });
    expect(await run('stat -c %a:%U:%G:%s /etc/app/secret hello; cat hello')).toMatchObject({
      status: 0,
      stdout: '600:root:root:5\n644:ubuntu:ubuntu:6\nhello\n',
    });
    expect(await run('sudo cat /etc/app/secret')).toMatchObject({ status: 0, stdout: 'hush\n' });
  });

  it('runs the commands as root, one after another, logs them, and is done after the last', async () => {
    await boot({ cloudInit });
    await expect.poll(() => run('cat /srv/copy')).toMatchObject({ stdout: 'hush\n' });
    expect(await run('cloud-init status')).toMatchObject({ stdout: 'status: running\n' });
    expect(await run('ls /srv/last')).toMatchObject({ status: 1 });

    await clock.advance(10_000);
    expect(await run('cloud-init status')).toMatchObject({ stdout: 'status: done\n' });
    expect(await run('ls /srv/last')).toMatchObject({ status: 0 });
    const { stdout } = await run('sudo cat /var/log/cloud-init-output.log');
    expect(stdout).toContain('from runcmd\nbash: no-such-command: command not found\n');
  });

  it('runs the commands at the first boot only', async () => {
    await boot({ cloudInit: { runcmd: ['echo once >> /srv/count'] } });
    await expect.poll(() => run('cat /srv/count')).toMatchObject({ stdout: 'once\n' });
    doneValue(await driver.stop('berth-1', null));
    await driver.start('berth-1', null);
    await clock.advance(500);
    expect(await run('cat /srv/count')).toMatchObject({ stdout: 'once\n' });
  });
});

describe('the disk', () => {
  it('is kept across a stop and gone after a destroy', async () => {
    await boot();
    await run('echo kept > note');
    doneValue(await driver.stop('berth-1', null));
    await driver.start('berth-1', null);
    await clock.advance(500);
    expect(await run('cat note')).toMatchObject({ stdout: 'kept\n' });

    doneValue(await driver.destroy('berth-1', null, anOrder));
    await boot();
    expect(await run('cat note')).toMatchObject({ status: 1 });
  });

  it('can be full', async () => {
    await boot();
    await run('echo 0123456789abcdef0123456789abcdef > a');
    await run(Array.from({ length: 13 }, () => 'cat a a > b && cat b > a').join('; '));
    const copies = Array.from({ length: 20 }, (_, index) => `cat a > copy-${index}`).join('; ');
    expect(await run(copies)).toMatchObject({ stderr: expect.stringContaining('No space left on device') });
  });
});

describe('a volume', () => {
  it('shows up as a disk whose files move with it to another machine', async () => {
    const { volumes } = driver;
    if (volumes === undefined) throw new Error('the simulator has volumes');
    await boot();
    await boot({ ref: 'berth-2' });
    doneValue(
      await volumes.create({ ref: 'vol-1', datacenter: 'fra', sizeGb: 20, type: undefined, note: '' }, null),
    );
    doneValue(await volumes.attach('vol-1', 'berth-1', null));
    expect(await run('lsblk')).toMatchObject({
      stdout: expect.stringMatching(/^vdb +20G .*\/mnt\/vol-1$/m),
    });
    await run('echo moved > /mnt/vol-1/note; ls /mnt');
    doneValue(await volumes.detach('vol-1', 'berth-1', null));
    expect(await run('cat /mnt/vol-1/note')).toMatchObject({ status: 1 });

    doneValue(await volumes.attach('vol-1', 'berth-2', null));
    expect(await run('cat /mnt/vol-1/note', 'berth-2')).toMatchObject({ status: 0, stdout: 'moved\n' });
  });

  it('does not leave its datacenter, and cannot be attached to a missing machine', async () => {
    const { volumes } = driver;
    if (volumes === undefined) throw new Error('the simulator has volumes');
    await boot();
    await boot({ ref: 'berth-ams', datacenter: 'ams' });
    const spec = { ref: 'vol-1', datacenter: 'fra', sizeGb: 1, type: undefined, note: '' };
    expect(await volumes.create({ ...spec, datacenter: 'none' }, null)).toMatchObject({ code: 'invalid' });
    doneValue(await volumes.create(spec, null));
    expect(await volumes.attach('vol-1', 'berth-ams', null)).toMatchObject({
      code: 'invalid',
      sideEffect: 'none',
    });
    expect(await volumes.attach('vol-1', 'berth-none', null)).toMatchObject({
      code: 'gone',
      sideEffect: 'none',
    });
  });
});

describe('the power button inside', () => {
  it('stops the machine, which can be started again', async () => {
    await boot();
    const endpoint = endpointOf(await observe(driver, 'berth-1'));
    await user.ssh(endpoint, 'key', ['sudo poweroff']);
    await expect.poll(() => user.ssh(endpoint, 'key', ['true'])).toMatchObject({ status: 255 });
    expect(await observe(driver, 'berth-1')).toMatchObject({ power: 'stopped' });
    await driver.start('berth-1', null);
    await clock.advance(500);
    expect(await run('true')).toMatchObject({ status: 0 });
  });

  it('is for root only', async () => {
    await boot();
    expect(await run('poweroff')).toMatchObject({ status: 1 });
    expect(await observe(driver, 'berth-1')).toMatchObject({ power: 'running' });
  });

  it('reboots: SSH is away for a while, and the machine keeps running', async () => {
    await boot();
    await run('sudo reboot');
    expect(await observe(driver, 'berth-1')).toMatchObject({ power: 'running' });
    await expect.poll(() => run('true')).toMatchObject({ status: 255 });
    await clock.advance(500);
    await observe(driver, 'berth-1');
    expect(await run('true')).toMatchObject({ status: 0 });
  });
});

describe('a restart from outside', () => {
  it('ends every session and clears the memory; the disk comes back at the same address', async () => {
    await boot();
    const before = await observe(driver, 'berth-1');
    await run('echo kept > note; echo x > /run/note');
    expect(await run('cat note; ls /run/note')).toMatchObject({ status: 0, stdout: 'kept\n/run/note\n' });
    const sleeping = run('sleep 600');
    await expect.poll(() => run('true')).toMatchObject({ status: 0 });

    const restart = () => driver.restart('berth-1', 'the-id', null);
    expect(await restart()).toMatchObject({ outcome: 'pending' });
    expect(await sleeping).not.toMatchObject({ status: 0 });
    expect(await run('true')).toMatchObject({ status: 255 });
    expect(await observe(driver, 'berth-1')).toEqual(before);
    await clock.advance(500);
    expect(doneValue(await restart())).toEqual(before);
    expect(await run('cat note; ls /run/note')).toMatchObject({ status: 1, stdout: 'kept\n' });
  });
});
