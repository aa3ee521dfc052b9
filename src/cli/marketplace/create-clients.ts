import { isForbiddenAddress } from '../../client/addresses.ts';
import { createClient } from '../../client/create-client.ts';
import type { Credential } from '../../client/credential.ts';
import type { OrchestratorClient } from '../../client/orchestrator-client.ts';
import { bundledProfileFile, loadProfile } from '../../config/marketplace/load-profile.ts';
import type { MarketplaceConfig, ProviderEntry } from '../../config/marketplace/schema.ts';
import type { ConfiguredProvider } from '../../marketplace/providers/create-providers.ts';
import type { ProviderProfile } from '../../marketplace/providers/profile.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Log } from '../../ports/log.ts';
import type { SshProbe } from '../../ports/ssh-probe.ts';
import { createSshProbe } from '../../ssh/probe.ts';
import { Fatal } from '../fatal.ts';
import { toMarkups } from './marketplace-options.ts';
import { readSecretSource } from './read-secret-source.ts';

interface Parts {
  env: Readonly<Record<string, string | undefined>>;
  clock: Clock;
  log: Log;
}

/** A client for each provider of the configuration. @throws {Fatal | ConfigError} */
export function createClients(config: MarketplaceConfig, parts: Parts): ConfiguredProvider[] {
  const entries = config.providers.map((entry) => ({
    entry,
    profile: profileOf(entry),
    credential: credentialOf(entry, parts.env),
  }));
  return entries.map(({ entry, profile, credential }) => ({
    profile,
    client: connect(config, entry, credential, parts),
    sshProbe: probeOf(config, entry),
    markups: toMarkups(entry.markup),
  }));
}

function profileOf({ id, profile }: ProviderEntry): ProviderProfile {
  const file = profile ?? bundledProfileFile(id);
  if (file === undefined)
    throw new Fatal(`No profile comes with Berth for ${id}: name one with \`profile\`.`);
  // What users name it by is said in one place.
  return { ...loadProfile(file), id };
}

/** Machines are reached as the provider is: at private addresses only where those are allowed. */
function probeOf({ allow_private, verify_ssh }: MarketplaceConfig, entry: ProviderEntry): SshProbe | null {
  if (!(entry.verify_ssh ?? verify_ssh)) return null;
  return createSshProbe(allow_private || entry.allow_private ? {} : { isForbidden: isForbiddenAddress });
}

function credentialOf(entry: ProviderEntry, env: Parts['env']): Credential {
  if (entry.username !== undefined) {
    const source = { env: entry.password_env, file: entry.password_file };
    const password = readSecretSource(source, env, `the password of ${entry.id}`);
    return { exchange: { username: entry.username, password } };
  }
  const source = { env: entry.api_key_env, file: entry.api_key_file };
  const apiKey = readSecretSource(source, env, `the API key of ${entry.id}`);
  return entry.exchange ? { exchange: { api_key: apiKey } } : { apiKey };
}

function connect(
  { allow_private, polling }: MarketplaceConfig,
  entry: ProviderEntry,
  credential: Credential,
  { clock, log }: Parts,
): OrchestratorClient {
  try {
    return createClient({
      baseUrl: entry.base_url,
      credential,
      allowPrivate: allow_private || entry.allow_private,
      timeoutMs: polling.call_timeout_s * 1000,
      connections: polling.concurrency,
      clock,
      onProblem: (problem) => log.warn({ provider: entry.id, problem }, 'a part of a list cannot be read'),
    });
  } catch (error) {
    throw new Fatal(`The provider ${entry.id} cannot be used: ${(error as Error).message}.`, {
      cause: error,
    });
  }
}
