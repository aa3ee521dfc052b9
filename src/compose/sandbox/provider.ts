import { join } from 'node:path';
import { loadCatalogFile } from '../../config/load.ts';
import { bundledProfileFile, loadProfile } from '../../config/marketplace/load-profile.ts';
import { packageRoot } from '../../config/package-root.ts';
import type { Config } from '../../config/schema.ts';
import type { RandomState } from '../../drivers/kit/seeded-random.ts';
import { Draws } from '../../drivers/simulator/options.ts';
import { digestSecret } from '../../keys/api-key.ts';
import { type ProviderProfile, providerProfileSchema } from '../../marketplace/providers/profile.ts';
import { createAccount, createKey, DEFAULT_ACCOUNT } from '../../orchestrator/accounts/accounts.ts';
import { isPassword } from '../../orchestrator/accounts/password-checks.ts';
import { type Catalog, toCatalog } from '../../orchestrator/catalog/catalog.ts';
import type { CatalogFile } from '../../orchestrator/catalog/catalog-schema.ts';
import type { MarkName } from '../../orchestrator/model/marks.ts';
import { DEFAULT_PLATFORM } from '../../orchestrator/model/platform-resource.ts';
import type { Store } from '../../orchestrator/model/store.ts';
import { createPlatform, driverOf, type Stored } from '../../platform-model/platform.ts';
import { Fatal } from '../../ports/errors.ts';
import type { Log } from '../../ports/log.ts';
import type { SshProbe } from '../../ports/ssh-probe.ts';
import { revocable, type SandboxClock } from '../../sandbox/clock.ts';
import type { Faults } from '../../sandbox/faults/faults.ts';
import { wholeAnswer } from '../../sandbox/journal/whole-answer.ts';
import { manifestOf, modelProbe, rulesOf, type SandboxMachine } from '../../sandbox/machines.ts';
import type { Timing } from '../../sandbox/options.ts';
import type { SandboxProvider, Server } from '../../sandbox/provider.ts';
import { ORIGIN } from '../../sandbox/sandbox.ts';
import type { Part } from '../../sandbox/state/snapshots.ts';
import type { Transitions } from '../../sandbox/transitions/transitions.ts';
import { openMemoryStore } from '../../store/sqlite/store.ts';
import { type Orchestrator, startOrchestrator } from '../orchestrator/orchestrator.ts';
import type { createGuests as CreateGuests } from './guests.ts';
import { createRestartRandom } from './restart-random.ts';
import { createWakeUps } from './wake-ups.ts';

export interface ProviderParts {
  /** Name of the provider. `custom` is the one that sells `catalogFile`. */
  name: string;
  catalogFile: string | undefined;
  capacity: 'unlimited' | 'catalog';
  config: Config;
  clock: SandboxClock;
  seed: string;
  /** The current origin of base URLs. */
  origin(): string;
  faults: Pick<Faults, 'carry' | 'probe' | 'falsifiesLists'>;
  transitions: Pick<Transitions, 'carry'>;
  timing: Timing;
  /** Whether machines have real SSH servers. */
  ssh: boolean;
  log: Log;
  /** Called when a machine, a volume or an instance changes. */
  changed(): void;
}

/** The saved state of a provider. */
interface SavedProvider {
  database: Buffer;
  platform: Stored<SandboxMachine>;
  random: RandomState;
  /** The disks of machines that have SSH servers. */
  disks?: Buffer | undefined;
}

export type StartedProvider = Awaited<ReturnType<typeof startProvider>>;

/** Starts a provider. Its orchestrator starts with the first request: until then it has no work. @throws {Fatal} */
export async function startProvider(parts: ProviderParts) {
  const { name, clock, origin } = parts;
  const { profile, catalog: file } = loadProvider(name, parts.catalogFile);
  const catalog = parts.capacity === 'catalog' ? toCatalog(file) : withoutLimits(toCatalog(file));
  // The code of SSH servers is loaded only if they are used.
  const guests = parts.ssh ? (await import('./guests.ts')).createGuests : undefined;
  const open = opener(parts, catalog, profile, guests);
  let current = open();
  /** Adds an account and returns its key. */
  const addAccount = async (account: string): Promise<string> => {
    await createAccount(current.deps, account);
    return (await createKey(current.deps, account)).key;
  };
  return {
    name,
    profile,
    get baseUrl() {
      return `${origin()}/providers/${name}/v1`;
    },
    apiKey: await addAccount(DEFAULT_ACCOUNT),
    app: { fetch: async (request) => answer(await current.wake(), request) },
    get platform() {
      return current.platform;
    },
    async resourceOf(ref) {
      const { instances, volumes } = current.deps.store.read;
      const row = (await instances.byOwnerRef(ref)) ?? (await volumes.byOwnerRef(ref));
      return row ?? undefined;
    },
    /** The name of the account of a key or a token, also of one that is no longer valid. */
    async accountOf(credential: string): Promise<string | undefined> {
      const { credentials } = current.deps.store.read;
      const digest = digestSecret(credential);
      const found = (await credentials.keyByDigest(digest)) ?? (await credentials.tokenByDigest(digest));
      if (found === null) return undefined;
      return (await credentials.accountById(found.accountId))?.name ?? found.accountId;
    },
    wake: (ref) => current.wakeUps.add(ref),
    get changes() {
      return current.changes();
    },
    /** The operator API, for requests whose key was checked. It is loaded and assembled on the first one. */
    operator: { fetch: async (request: Request) => (await current.operate()).fetch(request) },
    probe: { probe: (...question) => current.probe.probe(...question) } satisfies SshProbe,
    get store(): Pick<Store, 'nextWorkAt' | 'read'> {
      return current.deps.store;
    },
    addAccount,
    save() {
      const database = current.opened.image();
      if (database === undefined) return undefined;
      const { machines, volumes } = current.platform;
      return {
        database,
        platform: structuredClone({
          machines: machines.all(),
          volumes: volumes.all(),
          attachments: volumes.attachments(),
        }),
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
  } satisfies SandboxProvider & Part<SavedProvider> & Record<string, unknown>;
}

/** Opens a saved provider, or a new one. */
function opener(
  {
    name,
    config,
    clock,
    seed: whole,
    faults,
    transitions,
    timing,
    log,
    ...parts
  }: Omit<ProviderParts, 'ssh'>,
  catalog: Catalog,
  profile: ProviderProfile,
  createGuests: typeof CreateGuests | undefined,
) {
  const seed = `${whole}/${name}`;
  const rules = rulesOf(catalog, manifestOf(profile), timing, seed);
  let changes = 0;
  const changed = (): void => {
    changes++;
    parts.changed();
  };
  return (saved?: SavedProvider) => {
    changes++;
    const time = revocable(clock);
    const random = createRestartRandom(seed, saved?.random);
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
    const draws = new Draws(seed);
    const storage = { machine: changed, volume: changed, attachment: changed };
    const platform =
      guests?.platform ??
      createPlatform({ clock, rules, machineDraws: draws, volumeDraws: draws, storage }, stored);
    const probe = faults.probe(name, guests?.probe ?? modelProbe(platform, clock));
    const carry = transitions.carry(name, faults.carry(name));
    const driver = driverOf(platform, rules.manifest, guests?.carry(carry) ?? carry);
    const opened = openMemoryStore(saved?.database);
    // Tests in one sandbox may lose most of its machines at a time. That is an error of the listing only if a fault says so.
    const acceptsLosses = (mark: MarkName) =>
      mark === 'losses_accepted_until' && !faults.falsifiesLists(name);
    const marks: Store['read']['marks'] = {
      get: async (mark) => (acceptsLosses(mark) ? Number.MAX_SAFE_INTEGER : opened.read.marks.get(mark)),
    };
    const noted: Store['transact'] = (body) => clock.noting(opened.transact(body));
    const wakeUps = createWakeUps(noted, () => clock.now(), log);
    const store: Store = {
      ...opened,
      read: { ...opened.read, marks },
      transact: (body) => noted(body).finally(() => wakeUps.committed()),
    };
    opened.subscribe({ instancesChanged: changed, workChanged: parts.changed });
    const deps = { store, clock: time.clock, random };
    const start = () =>
      startOrchestrator({
        ...deps,
        config,
        // Its listing is always right: a machine that a test removes is lost at once, however many others are.
        reconcile: { emptyForMs: 0, maxLosses: { share: 0, least: Number.MAX_SAFE_INTEGER } },
        catalog,
        drivers: new Map([[DEFAULT_PLATFORM, driver]]),
        probe,
        checkPassword: (password, stored) => clock.held(() => isPassword(password, stored)),
        environmentKey: undefined,
        log,
        failpoint: () => undefined,
      });
    let running: Promise<Orchestrator> | undefined;
    let operating: Promise<Server> | undefined;
    const wake = (): Promise<Orchestrator> => {
      running ??= random.duringStart(start);
      return running;
    };
    const startOperating = async (): Promise<Server> => {
      const { operateProvider } = await import('./operate-provider.ts');
      return operateProvider(await wake(), { name, config, clock });
    };
    return {
      ...{ deps, platform, probe, opened, time, guests, wakeUps },
      changes: () => changes,
      isEmpty: () => platform.machines.all().length === 0 && platform.volumes.all().length === 0,
      wake,
      operate(): Promise<Server> {
        operating ??= startOperating();
        return operating;
      },
      async close(): Promise<void> {
        wakeUps.close();
        await (await running)?.close();
        await driver.close();
        await guests?.close();
      },
    };
  };
}

/** Answers like the listener for node:http. */
async function answer({ app, polls }: Orchestrator, request: Request): Promise<Response> {
  const { method, url, headers } = request;
  const reply = polls.find(method, url.slice(ORIGIN.length));
  const isPlain = reply !== undefined && !headers.has('x-request-id');
  const polled =
    isPlain &&
    polls.answer(reply, headers.get('authorization') ?? undefined, headers.get('if-none-match') ?? undefined);
  return polled ? wholeAnswer(polled) : app.fetch(request);
}

/** The provider that sells the caller's catalog. */
export const CUSTOM = 'custom';

const customProfile = providerProfileSchema.parse({
  id: CUSTOM,
  name: 'Custom',
  machines: [{ deploy_timeout_minutes: 20 }],
  volumes: {
    min_size_gb: 1,
    max_size_gb: 100_000,
    price_per_gb_hour: 0.0001,
    name_max_length: 60,
    max_per_instance: null,
    shareable: true,
    attach_at_create: true,
    grow: true,
    rename: true,
  },
});

interface LoadedProvider {
  catalog: CatalogFile;
  profile: ProviderProfile;
}

const bundled = new Map<string, LoadedProvider>();

/** Loads a provider's catalog and profile. Bundled ones are loaded once in a process. @throws {Fatal | ConfigError} */
function loadProvider(name: string, catalogFile: string | undefined): LoadedProvider {
  if (name === CUSTOM && catalogFile !== undefined)
    return { catalog: loadCatalogFile(catalogFile), profile: customProfile };
  const loaded = bundled.get(name) ?? loadBundled(name);
  bundled.set(name, loaded);
  return loaded;
}

function loadBundled(name: string): LoadedProvider {
  const file = bundledProfileFile(name);
  if (file === undefined) throw new Fatal(`There is no provider ${name}: those of the sandbox are a to g.`);
  const catalog = join(packageRoot(), 'fixtures', 'catalogs', `${name}.yaml`);
  return { catalog: loadCatalogFile(catalog), profile: loadProfile(file) };
}

/** Units of an offer that no test uses up. */
const UNLIMITED_UNITS = 1_000_000_000;

/** The catalog with unlimited capacity. What is sold out in the catalog stays sold out. */
function withoutLimits({ regions, offers }: Catalog): Catalog {
  const each = <T>(all: ReadonlyMap<string, T>, change: (one: T) => T) =>
    new Map([...all].map(([id, one]) => [id, change(one)]));
  return {
    regions: each(regions, (region) => ({ ...region, storageGb: undefined })),
    offers: each(offers, (offer) => ({
      ...offer,
      placements: offer.placements.map(({ region, units }) => ({
        region,
        units: units === 0 ? 0 : UNLIMITED_UNITS,
      })),
    })),
  };
}
