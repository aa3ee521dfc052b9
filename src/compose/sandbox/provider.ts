import { join } from 'node:path';
import { loadCatalog } from '../../config/load.ts';
import { bundledProfileFile, loadProfile } from '../../config/marketplace/load-profile.ts';
import { packageRoot } from '../../config/package-root.ts';
import type { Config } from '../../config/schema.ts';
import type { RandomState } from '../../drivers/kit/seeded-random.ts';
import { Draws } from '../../drivers/simulator/options.ts';
import { type ProviderProfile, providerProfileSchema } from '../../marketplace/providers/profile.ts';
import { createAccount, createKey, DEFAULT_ACCOUNT } from '../../orchestrator/accounts/accounts.ts';
import { isPassword } from '../../orchestrator/accounts/password-checks.ts';
import type { Catalog } from '../../orchestrator/catalog/catalog.ts';
import { DEFAULT_PLATFORM } from '../../orchestrator/model/platform-resource.ts';
import type { Store } from '../../orchestrator/model/store.ts';
import { driverOf, type Stored } from '../../platform-model/platform.ts';
import { Fatal } from '../../ports/errors.ts';
import type { Log } from '../../ports/log.ts';
import type { SshProbe } from '../../ports/ssh-probe.ts';
import { revocable, type SandboxClock } from '../../sandbox/clock.ts';
import {
  createSandboxPlatform,
  manifestOf,
  modelProbe,
  rulesOf,
  type SandboxMachine,
} from '../../sandbox/machines.ts';
import type { Timing } from '../../sandbox/options.ts';
import type { FaultInjection, SandboxProvider } from '../../sandbox/provider.ts';
import type { Part } from '../../sandbox/state/snapshots.ts';
import { openMemoryStore } from '../../store/sqlite/store.ts';
import { type Orchestrator, startOrchestrator } from '../orchestrator/orchestrator.ts';
import type { createGuests as CreateGuests } from './guests.ts';
import { RestartRandom } from './restart-random.ts';

export interface ProviderParts {
  /** Name of the provider. `custom` is the one that sells `catalogFile`. */
  name: string;
  catalogFile: string | undefined;
  config: Config;
  clock: SandboxClock;
  seed: string;
  origin: string;
  faults: FaultInjection;
  timing: Timing;
  /** Whether machines have real SSH servers. */
  ssh: boolean;
  log: Log;
  /** Called when a machine, a volume or an instance changes. */
  changed(): void;
  /** Called after each transaction. */
  written(): void;
}

/** The saved state of a provider. */
interface SavedProvider {
  database: Buffer;
  platform: Stored<SandboxMachine>;
  random: RandomState;
  /** The disks of machines that have SSH servers. */
  disks?: Buffer | undefined;
}

export interface StartedProvider extends SandboxProvider, Part<SavedProvider> {
  profile: ProviderProfile;
  probe: SshProbe;
  readonly store: Pick<Store, 'nextWorkAt' | 'read'>;
  /** Adds an account and returns its key. */
  addAccount(name: string): Promise<string>;
  close(): Promise<void>;
}

/** Starts a provider. Its orchestrator starts with the first request: until then it has no work. @throws {Fatal} */
export async function startProvider(parts: ProviderParts): Promise<StartedProvider> {
  const { name, clock, origin } = parts;
  const { catalog, profile } = loadProvider(name, parts.catalogFile);
  // The code of SSH servers is loaded only if they are used.
  const guests = parts.ssh ? (await import('./guests.ts')).createGuests : undefined;
  const open = opener(parts, catalog, profile, guests);
  let current = open();
  const addAccount = async (account: string): Promise<string> => {
    await createAccount(current.deps, account);
    return (await createKey(current.deps, account)).key;
  };
  return {
    name,
    profile,
    baseUrl: `${origin}/providers/${name}/v1`,
    apiKey: await addAccount(DEFAULT_ACCOUNT),
    app: { fetch: async (request) => (await current.wake()).app.fetch(request) },
    get platform() {
      return current.platform;
    },
    async ownerOf(ref) {
      const { instances, volumes, credentials } = current.deps.store.read;
      const row = (await instances.byOwnerRef(ref)) ?? (await volumes.byOwnerRef(ref));
      if (row === null) return undefined;
      const account = await credentials.accountById(row.accountId);
      return { id: row.id, status: row.status, account: account?.name ?? row.accountId };
    },
    probe: { probe: (...question) => current.probe.probe(...question) },
    get store() {
      return current.deps.store;
    },
    addAccount,
    save() {
      const database = current.opened.image();
      if (database === undefined) return undefined;
      const { machines, volumes } = current.platform;
      const platform = {
        machines: machines.all(),
        volumes: volumes.all(),
        attachments: volumes.attachments(),
      };
      return {
        database,
        platform: structuredClone(platform),
        random: current.deps.random.state(),
        disks: current.guests?.image(),
      };
    },
    /** Running work is abandoned, as in a crash. */
    async load(saved) {
      current.time.revoke();
      await current.guests?.close();
      await current.opened.close();
      current = open(saved);
      await current.guests?.begin();
      if (!current.isEmpty()) await clock.during(current.wake());
    },
    async close() {
      await current.close();
      await current.opened.close();
    },
  };
}

/** Opens a saved provider, or a new one. */
function opener(
  { name, config, clock, seed: whole, faults, timing, log, changed, written }: Omit<ProviderParts, 'ssh'>,
  catalog: Catalog,
  profile: ProviderProfile,
  createGuests: typeof CreateGuests | undefined,
) {
  const seed = `${whole}/${name}`;
  const rules = rulesOf({ catalog, manifest: manifestOf(profile), timing, seed });
  let openings = 0;
  return (saved?: SavedProvider) => {
    openings += 1;
    const time = revocable(clock);
    const random = new RestartRandom(seed, saved?.random);
    const stored = saved && structuredClone(saved.platform);
    const guests = createGuests?.({
      sandboxClock: clock,
      clock: time.clock,
      rules,
      seed,
      timing,
      changed,
      stored,
      disks: saved?.disks,
    });
    const platform =
      guests?.platform ?? createSandboxPlatform({ clock, rules, draws: new Draws(seed), changed, stored });
    const probe = faults.probe(name, guests?.probe ?? modelProbe(platform, clock));
    const carry = faults.carry(name);
    const driver = driverOf(platform, rules.manifest, guests?.carry(carry) ?? carry);
    // `openings` makes the seed unique: the clock may be at the same time at two openings.
    const opened = openMemoryStore(saved?.database, `${seed} ${openings} ${clock.now()}`);
    const store: Store = {
      ...opened,
      transact: (body) => clock.noting(opened.transact(body).finally(written)),
    };
    opened.subscribe({ instancesChanged: changed, workChanged: changed });
    const deps = { store, clock: time.clock, random };
    const start = () =>
      startOrchestrator({
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
    let running: Promise<Orchestrator> | undefined;
    return {
      ...{ deps, platform, probe, opened, time, guests },
      isEmpty: () => platform.machines.all().length === 0 && platform.volumes.all().length === 0,
      wake(): Promise<Orchestrator> {
        running ??= random.duringStart(start);
        return running;
      },
      async close(): Promise<void> {
        await (await running)?.close();
        await driver.close();
        await guests?.close();
      },
    };
  };
}

/** The provider that sells the caller's catalog. */
export const CUSTOM = 'custom';

const customProfile = providerProfileSchema.parse({
  id: CUSTOM,
  name: 'Custom',
  instances: {
    stop: { supported: true },
    restart: { supported: true },
    deploy_timeouts: [{ minutes: 20 }],
  },
  volumes: {
    size_gb: { min: 1, max: 100_000 },
    price_per_gb_hour: 0.0001,
    name_max_length: 60,
    max_per_instance: null,
    shareable: true,
    attach_at_create: true,
    attach: { supported: true },
    detach: { allowed: 'always' },
    grow: true,
    rename: true,
  },
});

/** Loads a provider's catalog and profile. @throws {Fatal | ConfigError} */
function loadProvider(
  name: string,
  catalogFile: string | undefined,
): { catalog: Catalog; profile: ProviderProfile } {
  if (name === CUSTOM && catalogFile !== undefined)
    return { catalog: loadCatalog(catalogFile), profile: customProfile };
  const file = bundledProfileFile(name);
  if (file === undefined) throw new Fatal(`There is no provider ${name}: those of the sandbox are a to g.`);
  return {
    catalog: loadCatalog(join(packageRoot(), 'fixtures', 'catalogs', `${name}.yaml`)),
    profile: loadProfile(file),
  };
}
