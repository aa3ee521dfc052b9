import { join } from 'node:path';
import { loadCatalog } from '../config/load.ts';
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
import type { Store } from '../orchestrator/model/store.ts';
import { driverOf } from '../platform-model/platform.ts';
import type { Random } from '../ports/clock.ts';
import { Fatal } from '../ports/errors.ts';
import type { Log } from '../ports/log.ts';
import type { SshProbe } from '../ports/ssh-probe.ts';
import { withOverrides } from '../ports/with-overrides.ts';
import type { SandboxClock } from '../sandbox/clock.ts';
import { createSandboxPlatform, modelProbe, rulesOf } from '../sandbox/machines.ts';
import { manifestOf } from '../sandbox/manifest.ts';
import type { Timing } from '../sandbox/options.ts';
import type { FaultInjection, SandboxProvider } from '../sandbox/provider.ts';
import { openSqliteStore } from '../store/sqlite/store.ts';
import { startOrchestrator } from './orchestrator.ts';

export interface ProviderParts {
  name: string;
  config: Config;
  clock: SandboxClock;
  seed: string;
  origin: string;
  faults: FaultInjection;
  timing: Timing;
  log: Log;
  /** Called when a machine, a volume or an instance changes. */
  changed(): void;
}

export interface StartedProvider extends SandboxProvider {
  profile: ProviderProfile;
  probe: SshProbe;
  store: Pick<Store, 'nextWorkAt'>;
  /** Returns its key. */
  addAccount(name: string): Promise<string>;
  close(): Promise<void>;
}

/** Starts the orchestrator of one provider over a platform of its own. @throws {Fatal} */
export async function startProvider(parts: ProviderParts): Promise<StartedProvider> {
  const { name, config, clock, faults, timing, log, origin, changed } = parts;
  const { catalog, profile } = loadProvider(name);
  const seed = `${parts.seed}/${name}`;
  const random: Random = createSeededRandom(seed);
  const rules = faults.rules(name, rulesOf({ catalog, manifest: manifestOf(profile), timing, seed }));
  const platform = createSandboxPlatform({ clock, rules, draws: new Draws(seed), changed });
  const probe = faults.probe(name, modelProbe(platform, clock));
  const driver = driverOf(platform, rules.manifest, faults.carry(name));
  const opened = openSqliteStore(':memory:');
  const store = withOverrides(opened, { transact: (body) => clock.noting(opened.transact(body)) });
  opened.subscribe({ instancesChanged: changed, workChanged: changed });
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
    probe,
    checkPassword: async (password, stored) => {
      const release = clock.hold();
      return isPassword(password, stored).finally(release);
    },
    environmentKey: undefined,
    log,
    failpoint: () => undefined,
  });
  return {
    name,
    profile,
    baseUrl: `${origin}/providers/${name}/v1`,
    apiKey,
    app: orchestrator.app,
    platform,
    probe,
    store,
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
