import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { type PostgresServer, startPostgres } from '../../../test/support/databases/postgres.ts';
import { runMain } from '../../../test/support/processes/run-main.ts';
import { until } from '../../../test/support/time/until.ts';
import {
  answerJson,
  configurationAnswer,
  startAnsweringServer,
} from '../../client/answering-server.fixture.ts';
import { loadMarketplaceConfig } from '../../config/marketplace/load.ts';
import { serveMarketplace } from './marketplace.ts';

const folder = mkdtempSync(join(tmpdir(), 'berth-marketplace-replicas-'));
const config = join(folder, 'marketplace.yaml');
let postgres: PostgresServer;

beforeAll(async () => {
  postgres = await startPostgres();
  const url = await postgres.createDatabase('marketplace');
  writeFileSync(
    config,
    `database: ${url}
log_level: silent
providers:
- { id: provider-d, base_url: "http://127.0.0.1:1/v1", api_key_env: KEY_D, allow_private: true }
`,
  );
  vi.stubEnv('KEY_D', 'berth_secret_of_the_provider');
});
afterAll(async () => {
  vi.unstubAllEnvs();
  await postgres[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

async function serve(file = config) {
  const { env } = process;
  const serving = await serveMarketplace({
    config: loadMarketplaceConfig({ file, flags: { port: '0' }, env }),
    env,
  });
  return { ...serving, [Symbol.asyncDispose]: () => serving.stop() };
}

it('two servers on one PostgreSQL share their limits and their keys', async () => {
  await using first = await serve();
  await using second = await serve();
  const run = async (...args: string[]) => {
    const { code, stdout, stderr } = await runMain(['marketplace', ...args, '--config', config]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    return stdout;
  };
  await run('users', 'add', 'ann@example.com', '--allow-keys');
  const { api_key: key } = JSON.parse(await run('keys', 'create', 'ann@example.com', '--json'));
  for (const { baseUrl } of [first, second]) {
    const response = await fetch(`${baseUrl}/api/teams`, { headers: { Authorization: `Bearer ${key}` } });
    expect(await response.json()).toMatchObject([{ name: "ann's team" }]);
  }
  const remaining: (string | null)[] = [];
  for (const { baseUrl } of [first, second, first, second, first])
    remaining.push((await fetch(`${baseUrl}/api/providers`)).headers.get('X-RateLimit-Remaining'));
  expect(remaining).toEqual(['249', '248', '247', '246', '245']);
  expect(await run('verify-ledger')).toMatch('The ledger is consistent');
});

it('a starting server sells the catalog that another one has read, without reading it from the provider [catalog-shared-postgres]', async () => {
  await using provider = await startAnsweringServer(({ url }, response) =>
    answerJson(
      response,
      200,
      url.includes('locations') ? { locations: [] } : { configurations: [configurationAnswer] },
    ),
  );
  const file = join(folder, 'shared.yaml');
  writeFileSync(
    file,
    `database: ${await postgres.createDatabase('marketplace')}
log_level: silent
providers:
- { id: provider-d, base_url: "${provider.baseUrl}", api_key_env: KEY_D, allow_private: true }
`,
  );
  const sold = async (baseUrl: string) => {
    const response = await fetch(`${baseUrl}/api/gpu-offers`);
    return ((await response.json()) as { data: { offers: unknown[] }[] }).data;
  };
  await using first = await serve(file);
  await until('the first has read it', async () => (await sold(first.baseUrl)).length > 0);
  // The first server also lists its instances meanwhile.
  const catalogReads = () => provider.received.filter(({ url }) => url.includes('configurations')).length;
  const asked = catalogReads();
  await using second = await serve(file);
  expect(await sold(second.baseUrl)).toEqual(await sold(first.baseUrl));
  expect(catalogReads()).toBe(asked);
});
