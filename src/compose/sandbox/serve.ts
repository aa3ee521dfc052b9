import { chmodSync, writeFileSync } from 'node:fs';
import { Fatal } from '../../ports/errors.ts';
import { createLog } from '../../runtime/log.ts';
import type { SandboxOptions } from '../../sandbox/options.ts';
import type { ListenOptions, Sandbox } from '../../sandbox/sandbox.ts';
import { openSandbox } from './sandbox.ts';

export interface ServingSandbox {
  /** Such as `http://127.0.0.1:8099`. */
  origin: string;
  /** Where its control API answers over HTTP. */
  controlOrigin: string;
  sandbox: Sandbox;
  stop(): Promise<void>;
}

/** `scenario`: a file with defaults for the other options, and with the steps to play first. */
type ServingOptions = SandboxOptions & { scenario?: string };

/** `caFile`: it serves HTTPS, and writes the certificate of its CA here. */
type ServingAddress = Omit<ListenOptions, 'tls'> & { caFile?: string };

/** Serves a sandbox at one port. @throws {Fatal} with a sentence for the user */
export async function serveSandbox(
  { scenario: file, ...given }: ServingOptions,
  { caFile, ...address }: ServingAddress,
): Promise<ServingSandbox> {
  const scenario = file === undefined ? undefined : await read(file);
  const { sandbox, end } = await openSandbox({ log: createLog('warn'), ...scenario?.options, ...given });
  try {
    await scenario?.play(sandbox).catch((error: Error) => {
      throw new Fatal(`The scenario ${file} cannot be played: ${error.message}`, { cause: error });
    });
    const listener = await sandbox.listen({ ...address, tls: caFile !== undefined });
    if (caFile !== undefined) writeCa(caFile, listener.ca ?? '');
    const { origin, controlOrigin } = listener;
    return { origin, controlOrigin, sandbox, stop: async () => void (await end()) };
  } catch (error) {
    await end();
    throw error;
  }
}

/** @throws {Fatal} */
function writeCa(file: string, pem: string): void {
  try {
    writeFileSync(file, pem);
    // Clients of other users read it.
    chmodSync(file, 0o644);
  } catch (error) {
    throw new Fatal(`--tls ${file} cannot be written: ${(error as Error).message}.`, { cause: error });
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
