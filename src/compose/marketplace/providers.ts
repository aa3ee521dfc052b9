import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isForbiddenAddress } from '../../client/addresses.ts';
import { createClient } from '../../client/create-client.ts';
import type { Credential } from '../../client/credential.ts';
import type { OnProblem } from '../../client/elements.ts';
import type { OrchestratorClient } from '../../client/orchestrator-client.ts';
import { bundledProfileFile, loadProfile } from '../../config/marketplace/load-profile.ts';
import type { MarketplaceConfig, ProviderEntry } from '../../config/marketplace/schema.ts';
import { packageRoot } from '../../config/package-root.ts';
import { defaultOptions } from '../../marketplace/model/options.ts';
import type { Store } from '../../marketplace/model/store.ts';
import {
  type ConfiguredProvider,
  createProviders,
  type LiveProviders,
} from '../../marketplace/providers/create-providers.ts';
import { type GpuTypes, parseGpuTypes } from '../../marketplace/providers/gpu-types.ts';
import type { ProviderProfile } from '../../marketplace/providers/profile.ts';
import type { Clock } from '../../ports/clock.ts';
import { Fatal } from '../../ports/errors.ts';
import type { Log } from '../../ports/log.ts';
import type { SshProbe } from '../../ports/ssh-probe.ts';
import type { Certificates } from '../../runtime/certificates.ts';
import { createLog } from '../../runtime/log.ts';
import { systemClock } from '../../runtime/system.ts';
import { createSshProbe } from '../../ssh/probe.ts';
import { readSecretOf } from '../server/secret.ts';
import { toMarkups } from './options.ts';

/** Loads the bundled file of the providers' GPU names. */
export function loadGpuTypes(): GpuTypes {
  return parseGpuTypes(readFileSync(join(packageRoot(), 'fixtures', 'gpu-types.yaml'), 'utf8'));
}

/** Runs `body` with the providers and their stored catalogs, and closes them afterwards. @throws {Fatal} */
export async function withProviders<T>(
  config: MarketplaceConfig,
  store: Store,
  body: (providers: LiveProviders) => Promise<T>,
): Promise<T> {
  const parts = { clock: systemClock, log: createLog('silent') };
  const providers = createProviders({
    ...parts,
    providers: createClients(config, { ...parts, env: process.env }),
    gpuTypes: loadGpuTypes(),
    store,
  });
  try {
    await providers.reread();
    return await body(providers);
  } finally {
    await providers.close();
  }
}

interface Parts {
  env: Readonly<Record<string, string | undefined>>;
  clock: Clock;
  log: Log;
  /** Called with the certificates of the providers. */
  certificates?: Certificates;
  /** Called for each part of a provider's list that cannot be read. By default it is logged. */
  onProblem?: (provider: string, problem: Parameters<OnProblem>[0]) => void;
}

/** Creates a client for each configured provider that is not retired. @throws {Fatal | ConfigError} */
export function createClients(config: MarketplaceConfig, parts: Parts): ConfiguredProvider[] {
  const served = config.providers.filter(({ retired }) => !retired);
  const entries = served.map((entry) => ({
    entry,
    profile: profileOf(entry),
    credential: credentialOf(entry, parts.env),
  }));
  return entries.map(({ entry, profile, credential }) => ({
    profile,
    client: connect(entry, credential, parts),
    sshProbe: probeOf(entry),
    markups: toMarkups(entry.markup),
  }));
}

function profileOf({ id, profile }: ProviderEntry): ProviderProfile {
  const file = profile ?? bundledProfileFile(id);
  if (file === undefined)
    throw new Fatal(`Berth has no bundled profile for ${id}: give a profile file in \`profile\`.`);
  // The provider's id is set here only.
  return { ...loadProfile(file), id };
}

/** Creates the SSH proof of a provider's machines. They may have private addresses only if the provider may. */
function probeOf({ allow_private, verify_ssh }: ProviderEntry): SshProbe | null {
  if (!verify_ssh) return null;
  return createSshProbe(allow_private ? {} : { isForbidden: isForbiddenAddress });
}

function credentialOf(entry: ProviderEntry, env: Parts['env']): Credential {
  if (entry.username !== undefined) {
    const password = readSecretOf(entry.password_env, env, `the password of ${entry.id}`);
    return { exchange: { username: entry.username, password } };
  }
  const apiKey = readSecretOf(entry.api_key_env, env, `the API key of ${entry.id}`);
  return entry.exchange ? { exchange: { api_key: apiKey } } : { apiKey };
}

function connect(
  entry: ProviderEntry,
  credential: Credential,
  { clock, log, certificates, onProblem = hourlyLog({ clock, log }) }: Parts,
): OrchestratorClient {
  try {
    return createClient({
      baseUrl: entry.base_url,
      credential,
      allowPrivate: entry.allow_private,
      timeoutMs: defaultOptions.polling.callTimeoutMs,
      connections: defaultOptions.polling.concurrency,
      clock,
      certificateSeen: certificates?.of('provider', entry.id),
      onProblem: (problem) => onProblem(entry.id, problem),
    });
  } catch (error) {
    throw new Fatal(`The provider ${entry.id} cannot be used: ${(error as Error).message}.`, {
      cause: error,
    });
  }
}

const HOUR_MS = 3_600_000;
/** How many problems are remembered. */
const MOST_PROBLEMS = 1_000;

/** Logs each problem once an hour: lists are read every few seconds. */
export function hourlyLog({ clock, log }: Pick<Parts, 'clock' | 'log'>): NonNullable<Parts['onProblem']> {
  const loggedAt = new Map<string, number>();
  return (provider, problem) => {
    const key = JSON.stringify([provider, problem]);
    const now = clock.now();
    const last = loggedAt.get(key);
    if (last !== undefined && now - last < HOUR_MS) return;
    if (loggedAt.size >= MOST_PROBLEMS) loggedAt.clear();
    loggedAt.set(key, now);
    log.warn({ provider, problem }, 'part of a list cannot be read');
  };
}
