import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { getRequestListener } from '@hono/node-server';
import { Hono } from 'hono';
import { silentLog } from '../../../test/support/doubles/log.ts';
import { startServer } from '../../../test/support/http/wire.ts';
import { putEmptyDatabase } from '../../../test/support/rows/stores.ts';
import { packageVersion } from '../../config/package-root.ts';
import type { ConsoleEnv } from '../../operator-kit/console/deps.ts';
import { createOperatorKey, Operators } from '../../operator-kit/keys.ts';
import type { Clock } from '../../ports/clock.ts';
import { systemClock, systemRandom } from '../../runtime/system.ts';
import { openMarketplaceSqliteStore } from '../../store/marketplace/sqlite/store.ts';
import { defaultOptions } from '../model/options.ts';
import type { ProviderFacts } from '../operate/views/providers.ts';
import { createConsole } from './app.ts';

/** The console on its own store, without a marketplace. The test writes the rows. */
export async function startMarketConsole({ clock = systemClock }: { clock?: Clock } = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'berth-market-console-'));
  const path = join(folder, 'marketplace.db');
  await putEmptyDatabase('marketplace', path);
  const store = openMarketplaceSqliteStore(path);
  const deps = { store, clock, random: systemRandom };
  const { key } = await createOperatorKey(deps, { name: 'mara' });
  const errors: object[] = [];
  const answers: ProviderFacts = {
    catalogReadAt: clock.now() - 9_000,
    certificateEndsAt: clock.now() + 60 * 86_400_000,
    offers: 31,
    offersInStock: 22,
    problems: [],
  };
  const built = createConsole({
    ...deps,
    operators: new Operators({ ...deps, log: { warn: () => undefined } }),
    sellers: { ids: () => [], get: () => undefined },
    providers: () =>
      new Map([
        ['provider-a', answers],
        ['provider-b', { ...answers, offers: 12, offersInStock: 3 }],
        ['provider-c', { ...answers, problems: ['calls about deployments fail: unauthorized'] }],
      ]),
    options: defaultOptions,
    maxLosses: defaultOptions.maxLosses,
    log: { ...silentLog, error: (fields) => void errors.push(fields) },
    version: packageVersion(),
    server: 'market-1',
    trustedProxies: 0,
  });
  const app = new Hono<ConsoleEnv>().all('/console/*', ({ req, env }) => built.fetch(req.raw, env));
  let served: Awaited<ReturnType<typeof startServer>> | undefined;
  return {
    store,
    /** The entries logged at error level. */
    errors,
    clock,
    key,
    request: (to: string, init?: RequestInit) => app.request(`http://console.test${to}`, init),
    /** Logs in as a browser does. Returns the cookie. */
    async logIn(): Promise<string> {
      const body = new URLSearchParams({ key });
      const reply = await app.request('http://console.test/console/login', { method: 'POST', body });
      return reply.headers.get('set-cookie')?.split(';')[0] ?? '';
    },
    /** Serves the console on a free port. */
    async listen(): Promise<string> {
      served = await startServer({ listener: getRequestListener(app.fetch) });
      return `http://127.0.0.1:${served.port}`;
    },
    async [Symbol.asyncDispose](): Promise<void> {
      await served?.server.close(0);
      await store.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

export type TestMarketConsole = Awaited<ReturnType<typeof startMarketConsole>>;
