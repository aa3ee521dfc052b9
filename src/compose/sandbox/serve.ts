import type { RequestListener, ServerResponse } from 'node:http';
import { getRequestListener } from '@hono/node-server';
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import { loadConfig } from '../../config/load.ts';
import { requestIds } from '../../http/api/request-context.ts';
import { refuseWire } from '../../orchestrator/http/errors.ts';
import { Fatal } from '../../ports/errors.ts';
import { createLog } from '../../runtime/log.ts';
import { systemRandom } from '../../runtime/system.ts';
import { sendTo } from '../../sandbox/faults/connection.ts';
import type { SandboxOptions } from '../../sandbox/options.ts';
import type { Sandbox } from '../../sandbox/sandbox.ts';
import { listen } from '../server/listen.ts';
import { createSandbox } from './sandbox.ts';

export interface ServingSandbox {
  /** Such as `http://127.0.0.1:8099`. */
  origin: string;
  sandbox: Sandbox;
  stop(): Promise<void>;
}

/** `scenario`: a file with defaults for the other options, and with the steps to play first. */
type ServingOptions = Omit<SandboxOptions, 'origin'> & { scenario?: string };

/** Serves a sandbox at one port. @throws {Fatal} with a sentence for the user */
export async function serveSandbox(
  { scenario: file, ...given }: ServingOptions,
  { host, port }: { host: string; port: number },
): Promise<ServingSandbox> {
  const { config } = loadConfig({ flags: {}, env: {} });
  const scenario = file === undefined ? undefined : await read(file);
  const options: SandboxOptions = scenario === undefined ? given : { ...scenario.options, ...given };
  const log = options.log ?? createLog('warn');
  const starting = getRequestListener(() => new Response('The sandbox is starting.\n', { status: 503 }));
  let listener: RequestListener = starting;
  const { server, origin } = await listen(
    { ...config, server: { ...config.server, host, port } },
    { nextId: requestIds(systemRandom), refuse: refuseWire, log },
    (request, response) => listener(request, response),
  );
  try {
    const sandbox = await createSandbox({ ...options, log, origin });
    await scenario?.play(sandbox).catch(async (error: Error) => {
      await sandbox.close();
      throw new Fatal(`The scenario ${file} cannot be played: ${error.message}`, { cause: error });
    });
    listener = getRequestListener(async (request, { outgoing }) => {
      const response = await sendTo(outgoing as ServerResponse, sandbox.fetch(request));
      // A clone: node-server would send the original as a real response if its own Response class was installed when
      // the original was made.
      return response ?? RESPONSE_ALREADY_SENT.clone();
    });
    return {
      origin,
      sandbox,
      stop: async () => {
        await server.close(0);
        await sandbox.close();
      },
    };
  } catch (error) {
    await server.close(0);
    throw error;
  }
}

/** Reads a scenario file. The code for that is loaded only if there is one. @throws {Fatal} */
async function read(file: string) {
  const { readScenario } = await import('../../sandbox/state/read-scenario.ts');
  const scenario = readScenario(file);
  return {
    options: { clock: 'real', ...scenario.sandbox } as SandboxOptions,
    play: ({ control }: Sandbox) => control.play(scenario),
  };
}
