import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { stringify } from 'yaml';
import { Fatal } from '../../ports/errors.ts';
import { createLog } from '../../runtime/log.ts';
import { Recorder } from '../../sandbox/record/recorder.ts';
import { Replay, type ReplayOptions } from '../../sandbox/record/replay.ts';
import type { RecordedExchange } from '../../sandbox/record/violations.ts';
import type { ListenOptions } from '../../sandbox/sandbox.ts';
import { readScenario } from '../../sandbox/state/read-scenario.ts';
import type { ScenarioInput } from '../../sandbox/state/scenario-format.ts';
import { listenOn } from './listen.ts';

/** Mode of the recording. It is private, because a provider's answers contain its tenants' data. */
const MODE = 0o600;

export interface ServingRecorder {
  /** The base URL for clients, in place of the provider's. */
  baseUrl: string;
  stop(): Promise<void>;
}

/** A finished recording. */
export interface Recorded {
  file: string;
  exchanges: readonly RecordedExchange[];
}

/**
 * Serves a recorder. When it stops, it writes the exchanges to `file` as a scenario.
 * @throws {Fatal} if the address or the file cannot be used
 */
export async function serveRecorder(
  { target, file }: { target: string; file: string },
  address: ListenOptions,
  recorded: (recording: Recorded) => void,
): Promise<ServingRecorder> {
  const url = toTarget(target);
  writeScenario(file, toScenario(url, Date.now(), []), 'wx');
  const startedAt = Date.now();
  const recorder = new Recorder({ target: url, now: Date.now, fetch: globalThis.fetch });
  const { origin, close } = await listenOn((request) => recorder.fetch(request), address, createLog('warn'));
  return {
    baseUrl: `${origin}/v1`,
    stop: async () => {
      await close();
      const exchanges = await recorder.exchanges();
      writeScenario(file, toScenario(url, startedAt, exchanges), 'w');
      recorded({ file, exchanges });
    },
  };
}

/** Serves a recording of `berth sandbox record`. @throws {Fatal} if the file cannot be used, or is not a recording */
export async function serveReplay(
  file: string,
  address: ListenOptions,
  options: ReplayOptions = {},
): Promise<ServingRecorder & { target: string; count: number }> {
  const { recording } = readScenario(file);
  if (recording === undefined)
    throw new Fatal(`${file} has no recording: give a file that \`berth sandbox record\` wrote.`);
  const replay = new Replay(recording.exchanges, options);
  const { origin, close } = await listenOn((request) => replay.fetch(request), address, createLog('warn'));
  return {
    baseUrl: `${origin}/v1`,
    target: recording.target,
    count: recording.exchanges.length,
    stop: close,
  };
}

function toTarget(text: string): URL {
  const target = URL.parse(text);
  if (target === null || !/^https?:$/.test(target.protocol) || target.username !== '')
    throw new Fatal(`--target ${text}: give the base URL of a provider, such as https://gpu.example/v1.`);
  return target;
}

function toScenario(target: URL, startedAt: number, exchanges: RecordedExchange[]): ScenarioInput {
  const { origin, pathname } = target;
  return {
    name: `recorded-${target.hostname}`.slice(0, 63),
    recording: {
      target: `${origin}${pathname}`,
      recorded_at: new Date(startedAt).toISOString(),
      exchanges,
    },
  };
}

function writeScenario(file: string, scenario: ScenarioInput, flag: 'w' | 'wx'): void {
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    writeFileSync(file, stringify(scenario, { lineWidth: 0 }), { mode: MODE, flag });
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const reason = code === 'EEXIST' ? 'the file exists already' : message;
    throw new Fatal(`The recording ${file} cannot be written (${reason}): give another name with --out.`);
  }
}
