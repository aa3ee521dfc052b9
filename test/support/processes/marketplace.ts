import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileOf } from './built-programs.ts';
import { BerthProcess, runBerth } from './process.ts';
import type { ProviderServerOptions } from './provider-server.ts';

const providerFile = fileOf('provider-server');

/** What the environment of a marketplace and of its commands has. */
export const MARKETPLACE_ENV = { PROVIDER_KEY: 'the-key-of-the-provider' };
/** An offer of the provider below, which can be stopped, restarted and given volumes. */
export const OFFER = { provider: 'provider-x', offerId: 'gpu-1', region: 'eu-one' } as const;

const PROFILE = `id: ${OFFER.provider}
name: Provider X
machines: [{ deploy_timeout_minutes: 15 }]
volumes:
  min_size_gb: 1
  max_size_gb: 50000
  price_per_gb_hour: 0.0001
  name_max_length: 60
  max_per_instance: null
  shareable: false
  attach_at_create: true
  grow: true
  rename: true
`;

/** A provider in a process of its own. */
export async function startProvider(
  options: ProviderServerOptions,
): Promise<BerthProcess & { baseUrl: string }> {
  const started = new BerthProcess([JSON.stringify(options)], { entry: providerFile });
  return Object.assign(started, { baseUrl: await readyUrl(started) });
}

/** The address that a server prints with `--json`. */
async function readyUrl(server: BerthProcess): Promise<string> {
  const line = await server.waitForOutput((stdout) => /^\{.*\}$/m.exec(stdout)?.[0]);
  return String(JSON.parse(line).base_url);
}

/** Writes a marketplace.yaml of one provider, without limits, and returns its path. `more`: other keys of the file. */
export function writeMarketplaceConfig(
  folder: string,
  { database, providerUrl, more = '' }: { database: string; providerUrl: string; more?: string },
): string {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'profile.yaml'), PROFILE);
  const file = join(folder, 'marketplace.yaml');
  writeFileSync(
    file,
    `server: { port: 0, admin: { port: 0 } }
database: ${database}
providers:
  - { id: ${OFFER.provider}, base_url: '${providerUrl}', api_key_env: PROVIDER_KEY, allow_private: true, verify_ssh: false, profile: profile.yaml }
team_limits: { deployments: null, volumes: null, volume_gb: null }
rate_limits: false
${more}`,
  );
  return file;
}

/** Runs `berth marketplace …` to its end. @throws {Error} unless it ends with 0 */
export async function operateMarketplace(
  config: string,
  args: readonly string[],
  entry?: string,
): Promise<string> {
  const { code, stdout, stderr } = await runBerth(['marketplace', ...args, '--config', config], {
    env: MARKETPLACE_ENV,
    entry,
  });
  if (code !== 0) throw new Error(`${args.join(' ')} ended with ${code}: ${stdout}${stderr}`);
  return stdout;
}

/** A user with a team that has a million dollars to spend; the server at `baseUrl` runs. */
export async function addRichTeam(
  { config, baseUrl, entry }: { config: string; baseUrl: string; entry?: string },
  email: string,
): Promise<{ apiKey: string; teamId: string }> {
  await operateMarketplace(config, ['users', 'create', email, '--allow-keys'], entry);
  const made = await operateMarketplace(config, ['keys', 'create', email, '--json'], entry);
  const { api_key: apiKey } = JSON.parse(made) as { api_key: string };
  const teams = await fetch(`${baseUrl}/api/teams`, { headers: { Authorization: `Bearer ${apiKey}` } });
  const [team] = (await teams.json()) as { id: string }[];
  const teamId = team?.id ?? '';
  await operateMarketplace(config, ['credit', 'grant', teamId, '1000000'], entry);
  return { apiKey, teamId };
}
