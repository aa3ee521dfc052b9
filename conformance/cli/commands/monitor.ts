import { Command } from 'commander';
import { CertificateError, verifySigned } from '../../certificate/sign.ts';
import { certificateDigest } from '../../monitor/certificate/certificate.ts';
import { parseCertificate } from '../../monitor/certificate/read.ts';
import { ConfigError, credentialsOf, type MonitorConfig, readConfig } from '../../monitor/config.ts';
import { Monitor, type Watched } from '../../monitor/monitor.ts';
import { serve } from '../../monitor/publish/server.ts';
import { openState, StateError } from '../../monitor/state.ts';
import { EXIT } from '../../verdict/outcome.ts';
import { Interruption } from '../interruption.ts';
import { privateKeyOf, publicKeyOf } from '../keys.ts';
import type { CliParts, Finish } from '../parts.ts';
import { CommandError } from '../program.ts';
import { readTextFile } from '../report-file.ts';
import { numberIn } from '../run-options.ts';
import { openTransport } from '../target-options.ts';

const STOP_LIMIT_S = 600;

interface Flags {
  config: string;
  stopLimitS: number;
}

/** `berth conformance monitor`: probes providers at drawn moments, for weeks. */
export function monitorCommand(parts: CliParts, finish: Finish): Command {
  return new Command('monitor')
    .description('probe providers at drawn moments within a budget, and publish what they do over weeks')
    .requiredOption('--config <file>', 'the providers, budgets and rules; see examples/monitor.yaml')
    .option(
      '--stop-limit-s <seconds>',
      'how long the clean-up may take when the monitor is stopped; the next start finishes it',
      numberIn({ unit: 'seconds', min: 0, max: 86_400 }),
      STOP_LIMIT_S,
    )
    .action(async (flags: Flags) => {
      finish(await orCommandError(() => watch(flags, parts)));
    })
    .addCommand(transcriptCommand(parts))
    .addCommand(verifyCommand(parts));
}

async function watch(flags: Flags, parts: CliParts): Promise<number> {
  const { terminal, clock, ssh } = parts;
  const config = readConfig(flags.config);
  const signKey = config.sign_key_file === undefined ? undefined : privateKeyOf(config.sign_key_file);
  const watched = watchedOf(config, parts);
  const state = await openState(config.state);
  using interruption = new Interruption(parts.signals, terminal);
  interruption.notice = `Stopping: running machines are destroyed first, for at most ${flags.stopLimitS} s.`;
  const limit = new AbortController();
  const abandon = AbortSignal.any([interruption.abandon, limit.signal]);
  const transport = parts.createTransport({});
  const monitor = new Monitor({
    config,
    ...(signKey !== undefined && { signKey }),
    watched,
    state,
    ssh,
    clock,
    transport,
    log: (text) => terminal.err(`${new Date(clock.wall()).toISOString()} ${text}\n`),
    signal: interruption.signal,
    abandon,
  });
  const done = new AbortController();
  interruption.signal.addEventListener('abort', () => {
    clock
      .sleep(flags.stopLimitS * 1000, done.signal)
      .then(() => limit.abort(new Error('the time of --stop-limit-s is over')))
      .catch(() => {});
  });
  const transports = [transport, ...watched.map((each) => each.transport)];
  for (const each of transports) abandon.addEventListener('abort', () => void each.close(), { once: true });
  const server =
    config.listen === undefined
      ? undefined
      : await serve(config.listen, {
          certificates: () => monitor.certificates(),
          state: () => monitor.state(),
        });
  if (server !== undefined) terminal.err(`listening on port ${server.port}\n`);
  try {
    const left = await monitor.run();
    if (interruption.fault !== undefined) throw interruption.fault;
    if (left === 0) return EXIT.conformant;
    terminal.err(
      `${left} resources MAY STILL BE RUNNING AND BILLING: start the monitor again with the same state, which destroys them.\n`,
    );
    return EXIT.mayBeRunning;
  } finally {
    done.abort();
    await server?.close();
    state.close();
    for (const each of transports) await each.close();
  }
}

function watchedOf(config: MonitorConfig, parts: CliParts): Watched[] {
  return config.providers.map((provider) => {
    const { baseUrl, apiKey } = credentialsOf(provider, parts.env);
    parts.terminal.secrets.add(`${provider.name} api key`, apiKey);
    const { ca_file: caFile } = provider;
    const transport = openTransport({ plain: true, ...(caFile !== undefined && { caFile }) }, parts);
    return { provider, baseUrl, apiKey, transport };
  });
}

function transcriptCommand({ terminal }: CliParts): Command {
  return new Command('transcript')
    .description('print the transcript behind a fault of a certificate')
    .argument('<sha256>', 'transcript_sha256 of the fault')
    .requiredOption('--config <file>', 'the configuration of the monitor')
    .action((digest: string, { config }: { config: string }) =>
      orCommandError(async () => {
        const state = await openState(readConfig(config).state);
        try {
          const text = state.transcript(digest);
          if (text === undefined)
            throw new CommandError(`the state has no transcript ${digest}: it may be older than two windows`);
          terminal.out(text);
        } finally {
          state.close();
        }
      }),
    );
}

function verifyCommand({ terminal }: CliParts): Command {
  return new Command('verify')
    .description('check the signature of a certificate')
    .argument('<file>', 'the certificate, as JSON')
    .requiredOption('--key <file>', 'the public key of the marketplace, PEM')
    .action((file: string, { key }: { key: string }) =>
      orCommandError(async () => {
        const read = parseCertificate(readTextFile(file));
        if ('problem' in read) throw new CommandError(`${file} is not a certificate: ${read.problem}`);
        const { certificate } = read;
        const trusted = publicKeyOf(key);
        try {
          verifySigned('berth-conformance-monitor', certificate, trusted);
        } catch (error) {
          if (!(error instanceof CertificateError)) throw error;
          throw new CommandError(`REFUSED: ${error.message}`, EXIT.nonConformant);
        }
        const { provider, status, window, issued_at } = certificate;
        terminal.out(
          `${provider}: ${status}, ${window.from} to ${window.to}, issued ${issued_at}, digest ${certificateDigest(certificate)}\nThe holder of the key says so. Whether it did probe the provider, the file cannot show.\n`,
        );
      }),
    );
}

async function orCommandError<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof ConfigError || error instanceof StateError) throw new CommandError(error.message);
    throw error;
  }
}
