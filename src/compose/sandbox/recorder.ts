import { writeFileSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { getRequestListener } from '@hono/node-server';
import { stringify } from 'yaml';
import { loadConfig } from '../../config/load.ts';
import { requestIds } from '../../http/api/request-context.ts';
import { refuseWire } from '../../orchestrator/http/errors.ts';
import { Fatal } from '../../ports/errors.ts';
import { createLog } from '../../runtime/log.ts';
import { systemRandom } from '../../runtime/system.ts';
import { Recorder } from '../../sandbox/record/recorder.ts';
import { Replay } from '../../sandbox/record/replay.ts';
import type { RecordedExchange } from '../../sandbox/record/violations.ts';
import { readScenario } from '../../sandbox/state/read-scenario.ts';
import type { ScenarioInput } from '../../sandbox/state/scenario-format.ts';
import { listen } from '../server/listen.ts';

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
  address: { host: string; port: number },
  recorded: (recording: Recorded) => void,
): Promise<ServingRecorder> {
  const url = toTarget(target);
  writeScenario(file, toScenario(url, Date.now(), []), 'wx');
  const startedAt = Date.now();
  const recorder = new Recorder({ target: url, now: Date.now, fetch: globalThis.fetch });
  const { server, origin } = await listenTo((request) => recorder.fetch(request), address);
  return {
    baseUrl: `${origin}/v1`,
    stop: async () => {
      await server.close(0);
      const exchanges = await recorder.exchanges();
      writeScenario(file, toScenario(url, startedAt, exchanges), 'w');
      recorded({ file, exchanges });
    },
  };
}

/** Serves a recording of `berth sandbox record`. @throws {Fatal} if the file cannot be used, or is not a recording */
export async function serveReplay(
  file: string,
  address: { host: string; port: number },
): Promise<ServingRecorder & { target: string; count: number }> {
  const { recording } = readScenario(file);
  if (recording === undefined)
    throw new Fatal(`${file} has no recording: give a file that \`berth sandbox record\` wrote.`);
  const replay = new Replay(recording.exchanges);
  const { server, origin } = await listenTo((request) => replay.fetch(request), address);
  return {
    baseUrl: `${origin}/v1`,
    target: recording.target,
    count: recording.exchanges.length,
    stop: () => server.close(0),
  };
}

async function listenTo(
  fetch: (request: Request) => Promise<Response>,
  { host, port }: { host: string; port: number },
) {
  const { config } = loadConfig({ flags: {}, env: {} });
  const parts = { nextId: requestIds(systemRandom), refuse: refuseWire, log: createLog('warn') };
  const listener: RequestListener = getRequestListener(fetch);
  return listen({ ...config, server: { ...config.server, host, port } }, parts, listener);
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
    writeFileSync(file, stringify(scenario, { lineWidth: 0 }), { mode: MODE, flag });
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const reason = code === 'EEXIST' ? 'the file exists already' : message;
    throw new Fatal(`The recording ${file} cannot be written (${reason}): give another name with --out.`);
  }
}
