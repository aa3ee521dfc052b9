import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { readSecret } from '../../keys/api-key.ts';
import type { PlatformDriver } from '../../orchestrator/model/platform-driver.ts';
import { Fatal } from '../../ports/errors.ts';
import type { DriverDefinition, DriverSetting } from '../kit/driver-definition.ts';
import { usualEnvironment } from '../kit/environment.ts';
import type { Channel, Greeter } from './channel.ts';
import type { Connected } from './diagnose.ts';
import { messageOf } from './errors.ts';
import { type ExecConfig, execConfigSchema, execOfferSchema } from './options.ts';

/** A driver in any language: a program that Berth talks to over pipes, or a server over HTTP. */
export const exec: DriverDefinition<ExecConfig> = {
  name: 'exec',
  about: {
    provedOn: 'programs in Python, JavaScript and sh, with and without each capability',
    provedBy: [
      'src/drivers/exec/driver.test.ts',
      'src/drivers/exec/templates.test.ts',
      'test/process/driver-test.openssh.long.test.ts',
    ],
    traps: [
      'A program that starts with fewer capabilities than before is not used until Berth is restarted.',
    ],
    guide: 'how-to/driver-in-any-language.md',
  },
  configSchema: execConfigSchema,
  offerSchema: execOfferSchema,
  placesOnHosts: true,
  check(options, { env }) {
    readSecret(env, options.token_env);
    environmentOf(options.environment, env);
    if (options.command !== undefined) assertProgram(options.command[0] ?? '', env);
  },
  async *diagnose(options, setting) {
    const { diagnose } = await import('./diagnose.ts');
    const { command, url } = options;
    yield* diagnose({
      ...setting,
      subject: command?.join(' ') ?? `driver at ${url}`,
      connect: () => connect(options, setting),
      timeoutMs: withinOf(options.timeout_s, setting),
    });
  },
  open: (options, setting) => openExec(options, setting),
};

/**
 * Opens the driver. `wrap` intercepts the channel, for example to record each exchange.
 *
 * @throws {Fatal} with a message for the operator
 */
export async function openExec(
  options: ExecConfig,
  setting: DriverSetting,
  wrap: (channel: Channel) => Channel = (channel) => channel,
): Promise<PlatformDriver> {
  const { createPlatform } = await import('./open.ts');
  const { channel, info } = await connect(options, setting, wrap);
  return createPlatform(channel, { ...setting, info, timeoutMs: options.timeout_s * 1000 });
}

/** @throws {Fatal} with a message for the operator */
async function connect(
  options: ExecConfig,
  setting: DriverSetting,
  wrap: (channel: Channel) => Channel = (channel) => channel,
): Promise<Connected> {
  const { Greeter } = await import('./channel.ts');
  const greeter = new Greeter(setting.log);
  const channel = wrap(await createChannel(options, setting, greeter));
  setting.asking?.signal.addEventListener('abort', () => void channel.close());
  try {
    await channel.open();
  } catch (error) {
    await channel.close();
    throw new Fatal(`${nameOf(options)} cannot be used: ${messageOf(error)}.`, { cause: error });
  }
  return { channel, info: greeter.info };
}

/**
 * Stop timeout under `berth doctor`, which waits only one second longer than an answer may take. A driver that still
 * waits for the process of `berth serve` can be killed: it has begun nothing.
 */
/** Time in which the program must end before it is killed. */
const STOP_MS = 5_000;
const STOP_SOON_MS = 300;

/** Time in which the driver must answer `info` when Berth starts. */
const START_TIMEOUT_S = 30;

/** A limit in milliseconds; `berth doctor` may shorten it. */
function withinOf(seconds: number, { asking }: Pick<DriverSetting, 'asking'>): number {
  return Math.min(seconds * 1000, asking?.withinMs ?? Number.POSITIVE_INFINITY);
}

function nameOf({ command, url }: ExecConfig): string {
  return command === undefined ? `The driver at ${url}` : `The driver ${command[0]}`;
}

async function createChannel(
  options: ExecConfig,
  { clock, log, env, umask, asking, certificateSeen }: DriverSetting,
  greeter: Greeter,
): Promise<Channel> {
  const setting = {
    clock,
    log,
    greeter,
    timeoutMs: withinOf(options.timeout_s, { asking }),
    startTimeoutMs: withinOf(START_TIMEOUT_S, { asking }),
  };
  const { command, url = '' } = options;
  if (command === undefined) {
    const { WebhookChannel } = await import('./webhook-channel.ts');
    const seen = certificateSeen?.('driver');
    return new WebhookChannel({ ...setting, url, token: readSecret(env, options.token_env), seen });
  }
  const [{ ProcessChannel }, { Secrets }] = await Promise.all([
    import('./process-channel.ts'),
    import('./secrets.ts'),
  ]);
  const named = environmentOf(options.environment, env);
  return new ProcessChannel({
    ...setting,
    command: umask === undefined ? command : withUmask(umask, command),
    env: { ...usualEnvironment(env), ...named },
    secrets: new Secrets(Object.values(named)),
    stopTimeoutMs: asking === undefined ? STOP_MS : STOP_SOON_MS,
  });
}

/**
 * Wraps the command in a shell, which sets the umask and then becomes the program. Node could set it only together with
 * that of Berth's own files.
 */
function withUmask(umask: number, command: readonly string[]): string[] {
  return ['/bin/sh', '-c', 'umask "$0" && exec "$@"', umask.toString(8).padStart(4, '0'), ...command];
}

function environmentOf(names: readonly string[], env: DriverSetting['env']): Record<string, string> {
  return Object.fromEntries(
    names.map((name) => {
      const value = env[name];
      if (value !== undefined) return [name, value];
      throw new Fatal(
        `platform.environment names ${name}, which is not set: set it, or remove it from the list.`,
      );
    }),
  );
}

/** @throws {Fatal} if the program does not exist */
function assertProgram(program: string, env: DriverSetting['env']): void {
  if (program.includes('/')) {
    const problem = problemOf(program);
    if (problem !== undefined) throw new Fatal(`The driver ${program} cannot be run: ${problem}.`);
    return;
  }
  const folders = (env['PATH'] ?? '').split(delimiter).filter((folder) => folder !== '');
  if (!folders.some((folder) => problemOf(join(folder, program)) === undefined))
    throw new Fatal(
      `The driver ${program} is not found in PATH: give its full path, such as /usr/local/bin/${program}.`,
    );
}

function problemOf(file: string): string | undefined {
  try {
    if (!statSync(file).isFile()) return 'it is not a file';
    accessSync(file, constants.X_OK);
    return undefined;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EACCES'
      ? 'it is not executable (chmod +x)'
      : 'the file does not exist';
  }
}
