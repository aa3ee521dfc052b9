import { execFile, execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type {
  Endpoint,
  MachineSpec,
  ObservedMachine,
  PlatformDriver,
  Step,
} from '../../orchestrator/model/platform-driver.ts';
import type { Clock } from '../../ports/clock.ts';
import type { DriverContext } from '../kit/checks/bench.ts';
import { guestLogin } from '../kit/guest.fixture.ts';

/** A machine of the offer `h100` in `fra`. */
export function machineSpec(overrides: Partial<MachineSpec> = {}): MachineSpec {
  return {
    ref: 'berth-1',
    offerId: 'h100',
    datacenter: 'fra',
    hostname: 'gpu-1',
    image: 'Ubuntu 24.04 LTS',
    vcpus: 8,
    memoryGb: 64,
    rootDiskGb: 100,
    gpuCount: 2,
    gpuType: 'H100',
    sshKeys: [],
    cloudInit: undefined,
    note: 'a note',
    ...overrides,
  };
}

const login = guestLogin();

/** The context of the shared checks for a simulator with two units of {@link machineSpec}. */
export function suiteContext(
  driver: PlatformDriver,
  clock: { advance: (ms: number) => Promise<void>; now: () => number },
): DriverContext {
  return {
    driver,
    machineSpec: (ref) => machineSpec({ ref, sshKeys: login.sshKeys }),
    volumeSpec: (ref) => ({ ref, datacenter: 'fra', sizeGb: 10, type: undefined, note: 'a note' }),
    units: 2,
    wait: (ms) => clock.advance(ms),
    now: () => clock.now(),
    patienceMs: 60_000,
    guest: login.guest,
    impossible: { invalid: { datacenter: 'nowhere' } },
    removeReleased: async () => undefined,
  };
}

/** The system clock, with timers that do not keep the process alive. */
export const realClock: Clock = {
  now: () => Date.now(),
  setTimer(delayMs, callback) {
    const timeout = setTimeout(callback, delayMs);
    timeout.unref();
    return { cancel: () => clearTimeout(timeout) };
  },
};

/** All durations zero, for tests that do not depend on time. */
export const instantly = {
  bootMs: [0, 0],
  stopMs: [0, 0],
  startMs: [0, 0],
  restartMs: [0, 0],
  destroyMs: [0, 0],
  volumeMs: [0, 0],
} satisfies Record<string, [number, number]>;

/** The value of a step. @throws {Error} if the step is not done */
export function doneValue<T>(step: Step<T>): T {
  if (step.outcome !== 'done') throw new Error(`not done: ${JSON.stringify(step)}`);
  return step.value;
}

export function endpointOf(machine: ObservedMachine): Endpoint {
  if (machine.endpoint === undefined) throw new Error('the machine has no endpoint');
  return machine.endpoint;
}

export async function observe(driver: PlatformDriver, ref: string): Promise<ObservedMachine> {
  const presence = await driver.get(ref);
  if (presence.answer !== 'observed') throw new Error(`not observed: ${presence.answer}`);
  return presence.value;
}

export interface Outcome {
  status: number;
  stdout: string;
  stderr: string;
}

/** A user's computer: a directory with keys and the OpenSSH client. */
export class Workstation {
  readonly directory = mkdtempSync(join(tmpdir(), 'berth-ssh-'));

  /** Makes a key pair and returns its public line. */
  makeKey(name: string, ...options: string[]): string {
    execFileSync('ssh-keygen', ['-q', '-N', '', '-C', name, '-f', join(this.directory, name), ...options]);
    return readFileSync(join(this.directory, `${name}.pub`), 'utf8').trim();
  }

  /** Runs `ssh` with one key, or with the agent's keys. `input`: its standard input. */
  ssh(
    endpoint: Endpoint,
    key: string | undefined,
    args: string[],
    options: { input?: string; env?: NodeJS.ProcessEnv; username?: string } = {},
  ): Promise<Outcome> {
    const { publicIp, sshPort, sshUsername } = endpoint;
    const settings = [
      'StrictHostKeyChecking=no',
      'UserKnownHostsFile=/dev/null',
      'BatchMode=yes',
      'LogLevel=ERROR',
    ];
    const flags = settings.flatMap((setting) => ['-o', setting]);
    const identity = key === undefined ? [] : ['-o', 'IdentitiesOnly=yes', '-i', join(this.directory, key)];
    const target = `${options.username ?? sshUsername}@${publicIp}`;
    return new Promise((resolve) => {
      const child = execFile(
        'ssh',
        ['-F', '/dev/null', ...flags, ...identity, '-p', String(sshPort), target, ...args],
        { timeout: 10_000, env: { ...process.env, ...options.env } },
        (error, stdout, stderr) =>
          resolve({ status: error === null ? 0 : Number(error.code ?? -1), stdout, stderr }),
      );
      child.stdin?.on('error', () => {});
      child.stdin?.end(options.input ?? '');
    });
  }

  close(): void {
    rmSync(this.directory, { recursive: true });
  }
}
