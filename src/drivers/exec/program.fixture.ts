import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { collectLog, type LogLine } from '../../../test/support/doubles/log.ts';
import { VirtualClock } from '../../../test/support/time/virtual-clock.ts';
import type { PlatformDriver } from '../../orchestrator/model/platform-driver.ts';
import type { DriverSetting } from '../kit/driver-definition.ts';
import { exec } from './driver.ts';
import type { ExecConfig } from './options.ts';

const CAPABILITIES = {
  ...{ stop: true, resume: true, restart: true, attach_volume: 'none', resize_volume: 'none' },
  ...{ create_visible_within_ms: 0, keeps_notes: false, cloud_init_bytes: 0 },
};

/** The answer to `info`, which is the first request of each run. */
export function infoAnswer(changed: object = {}): object {
  return { id: '1', result: { protocol: 1, name: 'script', capabilities: CAPABILITIES, ...changed } };
}

/** A shell line that prints a value as JSON. */
export function say(value: object): string {
  return `printf '%s\\n' '${JSON.stringify(value)}'`;
}

/** Shell lines that read the first request and answer it. */
export const greetingFor = (changed: object): string => `read -r line; ${say(infoAnswer(changed))}`;
export const GREETING = greetingFor({});

export const gone = (id: string) => say({ id, result: { answer: 'gone' } });
export const done = (id: string) => say({ id, result: { outcome: 'done', value: null } });
/** Reads requests without answering, until standard input is closed. */
export const LISTEN = 'while read -r line; do :; done';
export const WAIT_FOR_GO = 'while [ ! -e "$PLACE/go" ]; do sleep 0.02; done';
/** Writes its process id to a file, atomically. */
export const TELL_PID = 'echo $$ > "$PLACE/pid.new"; mv "$PLACE/pid.new" "$PLACE/pid"';
export const WAIT_FOR_PID = WAIT_FOR_GO.replace('go', 'pid');

export function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0) && !readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ');
  } catch {
    return false;
  }
}

export const setting = (given: Partial<DriverSetting>): DriverSetting => ({
  platform: 'default',
  catalog: { regions: new Map(), offers: new Map() },
  databaseFile: undefined,
  env: process.env,
  clock: new VirtualClock(),
  log: collectLog().log,
  ...given,
});

export interface Program extends AsyncDisposable {
  clock: VirtualClock;
  lines: LogLine[];
  /** A new folder; $PLACE in the script. */
  place: string;
  open(given?: Partial<DriverSetting>): Promise<PlatformDriver>;
  driver: PlatformDriver;
  /** Process id of the last run that answered. */
  readonly pid: number;
  /** The logged messages. */
  said(): string;
}

/** Prepares a driver that is a shell script, with a clock that the test advances. */
export function prepareProgram(
  script: string,
  options: Partial<ExecConfig> = {},
  env: Record<string, string> = {},
): Program {
  const place = mkdtempSync(join(tmpdir(), 'berth-exec-'));
  const clock = new VirtualClock();
  const { log, lines } = collectLog();
  const parsed = exec.configSchema.parse({
    driver: 'exec',
    command: ['sh', '-c', script],
    ...options,
    environment: ['PLACE', ...(options.environment ?? [])],
  });
  let driver: PlatformDriver | undefined;
  return {
    clock,
    lines,
    place,
    async open(given = {}) {
      driver = await exec.open(
        parsed,
        setting({ env: { ...process.env, PLACE: place, ...env }, clock, log, ...given }),
      );
      return driver;
    },
    get driver() {
      if (driver === undefined) throw new Error('it was not opened');
      return driver;
    },
    get pid() {
      return Number(lines.findLast(({ message }) => message === 'the driver answers')?.fields['driver_pid']);
    },
    said: () => lines.map(({ message, fields }) => `${message} ${JSON.stringify(fields)}`).join('\n'),
    async [Symbol.asyncDispose]() {
      if (driver !== undefined) await clock.advanceUntilSettled(driver.close(), 1_000);
      rmSync(place, { recursive: true });
    },
  };
}

export async function startProgram(...given: Parameters<typeof prepareProgram>): Promise<Program> {
  const program = prepareProgram(...given);
  await program.open();
  return program;
}
