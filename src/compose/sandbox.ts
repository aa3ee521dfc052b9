import { join } from 'node:path';
import { loadCatalog, loadConfig } from '../config/load.ts';
import { bundledProfileFile, loadProfile } from '../config/marketplace/load-profile.ts';
import { packageRoot } from '../config/package-root.ts';
import type { Config } from '../config/schema.ts';
import { createSeededRandom } from '../drivers/kit/seeded-random.ts';
import { Draws } from '../drivers/simulator/options.ts';
import type { ProviderProfile } from '../marketplace/providers/profile.ts';
import { createAccount, createKey, DEFAULT_ACCOUNT } from '../orchestrator/accounts/accounts.ts';
import { isPassword } from '../orchestrator/accounts/password-checks.ts';
import type { Catalog } from '../orchestrator/catalog/catalog.ts';
import { DEFAULT_PLATFORM } from '../orchestrator/model/platform-resource.ts';
import { driverOf } from '../platform-model/platform.ts';
import type { Random } from '../ports/clock.ts';
import { Fatal } from '../ports/errors.ts';
import type { Log } from '../ports/log.ts';
import { SandboxClock } from '../sandbox/clock.ts';
import { createSandboxPlatform, modelProbe, rulesOf } from '../sandbox/machines.ts';
import { manifestOf } from '../sandbox/manifest.ts';
import { defaultTiming, type SandboxOptions, START_AT, type Timing } from '../sandbox/options.ts';
import type { FaultInjection, Layer, SandboxProvider } from '../sandbox/provider.ts';
import { createRouter } from '../sandbox/router.ts';
import { ORIGIN, type Sandbox, type SandboxAccount, toProviderName } from '../sandbox/sandbox.ts';
import { openSqliteStore } from '../store/sqlite/store.ts';
import { startOrchestrator } from './orchestrator.ts';

export type { SandboxClock } from '../sandbox/clock.ts';
export type { SandboxOptions, Timing } from '../sandbox/options.ts';
export type { SandboxProvider } from '../sandbox/provider.ts';
export type { Sandbox, SandboxAccount } from '../sandbox/sandbox.ts';

const silent: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
};

/** Nothing goes wrong. */
const noFaults: FaultInjection = {
  layer: ({ request }, next) => next(request),
  carry: () => async (_method, _ref, call) => call(),
  rules: (_provider, own) => own,
  probe: (_provider, own) => own,
};

/** Starts providers in this process, in memory. @throws {Fatal} for a provider that does not come with Berth */
export async function createSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  const { seed: given = 1, clock: kind = 'virtual', timing, log = silent } = options;
  const seed = String(given);
  const clock = new SandboxClock(kind, kind === 'real' ? Date.now() : (options.startAt ?? START_AT));
  const faults = noFaults;
  const layers: Layer[] = [faults.layer];
  const { config } = loadConfig({ flags: {}, env: {} });
  const started = new Map<string, StartedProvider>();
  const ending = { isOver: false };

  async function close(): Promise<void> {
    if (ending.isOver) return;
    ending.isOver = true;
    for (const provider of started.values()) await clock.during(provider.close());
    clock.stop();
  }

  try {
    for (const name of (options.providers ?? ['a']).map(toProviderName)) {
      const parts = { name, config, clock, seed, faults, log, timing: { ...defaultTiming, ...timing } };
      started.set(name, await clock.during(startProvider(parts)));
    }
  } catch (error) {
    await close();
    throw error;
  }

  const accounts = new Map<string, string>();
  const router = createRouter({
    servers: new Map([...started].map(([name, { provider }]) => [name, provider.app])),
    layers,
    accountOf: (key) => accounts.get(key),
  });
  for (const { provider } of started.values()) accounts.set(provider.apiKey, DEFAULT_ACCOUNT);
  let made = 0;

  return {
    seed,
    clock,
    providers: new Map([...started].map(([name, { provider }]) => [name, provider])),
    provider(name) {
      const found = started.get(toProviderName(name));
      if (found === undefined) throw new Error(`There is no provider ${name} in this sandbox.`);
      return found.provider;
    },
    fetch: (input, init) => clock.during(router.route(toRequest(input, init))),
    async account(name = `account-${++made}`): Promise<SandboxAccount> {
      const providers: Record<string, { baseUrl: string; apiKey: string }> = {};
      for (const [provider, { addAccount, provider: about }] of started) {
        const apiKey = await addAccount(name);
        accounts.set(apiKey, name);
        providers[provider] = { baseUrl: about.baseUrl, apiKey };
      }
      return { name, providers };
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

interface StartedProvider {
  provider: SandboxProvider;
  /** Returns its key. */
  addAccount(name: string): Promise<string>;
  close(): Promise<void>;
}

interface ProviderParts {
  name: string;
  config: Config;
  clock: SandboxClock;
  seed: string;
  faults: FaultInjection;
  timing: Timing;
  log: Log;
}

async function startProvider(parts: ProviderParts): Promise<StartedProvider> {
  const { name, config, clock, faults, timing, log } = parts;
  const { catalog, profile } = loadProvider(name);
  const seed = `${parts.seed}/${name}`;
  const random: Random = createSeededRandom(seed);
  const own = rulesOf({ catalog, manifest: manifestOf(profile), timing, seed });
  const rules = faults.rules(name, own);
  const platform = createSandboxPlatform({ clock, rules, draws: new Draws(seed) });
  const driver = driverOf(platform, rules.manifest, faults.carry(name));
  const store = openSqliteStore(':memory:');
  const deps = { store, clock, random };
  const addAccount = async (account: string): Promise<string> => {
    await createAccount(deps, account);
    return (await createKey(deps, account)).key;
  };
  const apiKey = await addAccount(DEFAULT_ACCOUNT);
  const orchestrator = await startOrchestrator({
    ...deps,
    config,
    catalog,
    drivers: new Map([[DEFAULT_PLATFORM, driver]]),
    probe: faults.probe(name, modelProbe(platform, clock)),
    checkPassword: async (password, stored) => {
      const release = clock.hold();
      return isPassword(password, stored).finally(release);
    },
    environmentKey: undefined,
    log,
    failpoint: () => undefined,
  });
  return {
    provider: {
      name,
      baseUrl: `${ORIGIN}/providers/${name}/v1`,
      apiKey,
      app: orchestrator.app,
      platform,
    },
    addAccount,
    close: async () => {
      await orchestrator.close();
      await driver.close();
      await store.close();
    },
  };
}

/** What comes with Berth of a provider: what it sells, and its rules. @throws {Fatal} */
function loadProvider(name: string): { catalog: Catalog; profile: ProviderProfile } {
  const file = bundledProfileFile(name);
  if (file === undefined) throw new Fatal(`There is no provider ${name}: those of the sandbox are a to g.`);
  return {
    catalog: loadCatalog(join(packageRoot(), 'fixtures', 'catalogs', `${name}.yaml`)),
    profile: loadProfile(file),
  };
}

/** Only the path and the query of an address count. */
function toRequest(input: string | URL | Request, init?: RequestInit): Request {
  return new Request(input instanceof Request ? input : new URL(input, ORIGIN), init);
}
