import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startEmbedded } from '../support/databases/embedded-postgres.ts';
import type { ProviderTruth } from '../support/doubles/journaled-provider.ts';
import {
  addRichTeam,
  MARKETPLACE_ENV,
  startProvider,
  writeMarketplaceConfig,
} from '../support/processes/marketplace.ts';
import { Lives } from './processes.ts';

/** Short, so that a run of some minutes sees what is given up. Seconds. */
export const TIMES = { actionS: 45, lifecycleWaitS: 5, findCreateS: 30, blinkS: 20 };

const CONFIG = `billing: { minimum_runtime_minutes: 0 }
log_level: info
`;

const OPTIONS = JSON.stringify({
  lifecycleWaitMs: 1_000 * TIMES.lifecycleWaitS,
  polling: {
    intervalMs: [10_000, 20_000],
    blinkMs: 1_000 * TIMES.blinkS,
    sweepMs: 20_000,
    catalogMs: 10_000,
    findCreateMs: 1_000 * TIMES.findCreateS,
    actionMs: 1_000 * TIMES.actionS,
  },
  billing: { sliceMs: 10_000 },
});

export interface Team {
  id: string;
  apiKey: string;
}

/** One `berth marketplace` of several, over many lives. */
export class Server extends Lives {
  /** Of its present or last life. */
  baseUrl = '';

  constructor(name: string, folder: string, config: string) {
    const args = ['marketplace', '--json', '--port', '0', '--config', config];
    super(name, folder, () => args, { ...MARKETPLACE_ENV, BERTH_TEST_OPTIONS: OPTIONS }, 'hasty-marketplace');
  }

  override async start(): Promise<Record<string, string>> {
    const ready = await super.start();
    this.baseUrl = ready['base_url'] ?? '';
    return ready;
  }
}

export interface Setting extends AsyncDisposable {
  /** Of the database. */
  url: string;
  /** For commands. */
  config: string;
  servers: readonly Server[];
  teams: readonly Team[];
  /** Where the logs are; removed at the end unless `keep` was called. */
  folder: string;
  keep(): void;
  truth(): Promise<ProviderTruth>;
}

/** A PostgreSQL, a provider and servers, all of them started, and teams with money. */
export async function startSetting(given: {
  servers: number;
  teams: number;
  seed: string;
}): Promise<Setting> {
  await using stack = new AsyncDisposableStack();
  const folder = mkdtempSync(join(tmpdir(), 'berth-soak-'));
  let isKept = false;
  stack.defer(() => {
    if (!isKept) rmSync(folder, { recursive: true, force: true });
  });
  const database = await startEmbedded();
  stack.defer(database.stop);
  const provider = stack.use(
    await startProvider({
      ...{ bootMs: 300, stopMs: 200, startMs: 300, restartMs: 500, deleteMs: 200, volumeMs: 100 },
      ...{ delayMs: 20, seed: given.seed },
    }),
  );
  const config = writeMarketplaceConfig(folder, {
    database: database.url,
    providerUrl: provider.baseUrl,
    more: CONFIG,
  });
  const servers = Array.from(
    { length: given.servers },
    (_, index) => new Server(`server-${index + 1}`, folder, config),
  );
  stack.defer(async () => {
    await Promise.all(servers.map((server) => server.end('SIGKILL')));
  });
  for (const server of servers) await server.start();
  const baseUrl = servers[0]?.baseUrl ?? '';
  const teams: Team[] = [];
  for (let number = 0; number < given.teams; number++) {
    const { apiKey, teamId } = await addRichTeam({ config, baseUrl }, `user-${number}@example.com`);
    teams.push({ id: teamId, apiKey });
  }
  const truthUrl = new URL('/control/truth', provider.baseUrl);
  const owned = stack.move();
  return {
    ...{ url: database.url, config, servers, teams, folder },
    keep: () => {
      isKept = true;
    },
    truth: async () => (await (await fetch(truthUrl)).json()) as ProviderTruth,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
