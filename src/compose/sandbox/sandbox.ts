import { loadConfig } from '../../config/load.ts';
import type { Config } from '../../config/schema.ts';
import { invalidRequest } from '../../contract/errors.ts';
import { createSeededRandom } from '../../drivers/kit/seeded-random.ts';
import { DEFAULT_ACCOUNT } from '../../orchestrator/accounts/accounts.ts';
import { Fatal } from '../../ports/errors.ts';
import type { Log } from '../../ports/log.ts';
import { SandboxClock } from '../../sandbox/clock.ts';
import { createControlClient } from '../../sandbox/control/client.ts';
import { BrokenConnection, untilAborted } from '../../sandbox/faults/connection.ts';
import { Faults } from '../../sandbox/faults/faults.ts';
import { Weather } from '../../sandbox/faults/weather.ts';
import { Journal } from '../../sandbox/journal/journal.ts';
import {
  assertNode,
  assertOptions,
  defaultTiming,
  type SandboxOptions,
  START_AT,
  toProviderName,
} from '../../sandbox/options.ts';
import type { FaultInjection, Layer } from '../../sandbox/provider.ts';
import { createRouter } from '../../sandbox/router.ts';
import { ORIGIN, type Sandbox, type SandboxAccount } from '../../sandbox/sandbox.ts';
import { Snapshots } from '../../sandbox/state/snapshots.ts';
import { Transitions } from '../../sandbox/transitions/transitions.ts';
import { createControl, isControl, SandboxKeys } from './control.ts';
import { createIdleness } from './idleness.ts';
import type { StartedMarketplace } from './marketplace.ts';
import { CUSTOM, type StartedProvider, startProvider } from './provider.ts';
import { SandboxStateFile } from './state-file.ts';

export type { SandboxClock } from '../../sandbox/clock.ts';
export {
  type ControlClientOptions,
  createControlClient,
  type Duration,
  type SandboxControl,
} from '../../sandbox/control/client.ts';
export type { Arming } from '../../sandbox/faults/arming.ts';
export type { FaultName } from '../../sandbox/faults/catalog/catalog.ts';
export type { WeatherOptions } from '../../sandbox/faults/weather.ts';
export type { Assertion } from '../../sandbox/journal/assertions.ts';
export type { JournalEntry } from '../../sandbox/journal/entry.ts';
export type { JournalFilter } from '../../sandbox/journal/filter.ts';
export type { MarketplaceSettings, SandboxOptions, Timing } from '../../sandbox/options.ts';
export type { SandboxProvider } from '../../sandbox/provider.ts';
export type { Sandbox, SandboxAccount, SandboxMail, SandboxUser } from '../../sandbox/sandbox.ts';
export type { ScenarioInput } from '../../sandbox/state/scenario-format.ts';
export type { TransitionSetting } from '../../sandbox/transitions/transitions.ts';

const silent: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
};

/** Starts providers in this process, in memory. @throws {Fatal} for a provider without a bundled profile */
export async function createSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  assertNode(process.versions.node);
  assertOptions(options);
  const parts = createParts(options);
  const { clock, state, changed } = parts;
  const shutdown = createShutdown(parts);
  const orClose = async (error: unknown): Promise<never> => {
    await shutdown.close();
    throw error;
  };
  await startServers(parts, options).catch(orClose);
  clock.skipIdle(parts.idleness);
  const accounts = createAccounts(parts, shutdown.assertOpen);
  const started = await clock.during(accounts.open(DEFAULT_ACCOUNT));
  const { journal, faults, transitions, providers, keys, seed } = parts;
  const saved = [faults, transitions, ...parts.servers(), keys];
  const snapshots = new Snapshots(clock, [...saved, journal], changed);
  await snapshots.begin();
  const kept = state && (await restored(state, new Snapshots(clock, saved, changed), started).catch(orClose));
  const market = parts.market();
  const sandbox = {
    seed,
    clock,
    providers,
    mails: market?.mails ?? [],
    faults,
    weather: new Weather(faults, seed, parts.startedAt),
    transitions,
    defaultAccount: kept ?? started,
    account: accounts.add,
  };
  const control = createControl({ sandbox, keys, journal, snapshots, market, log: parts.log });
  const ask = createFetch(parts, control.app, shutdown.assertOpen);
  return {
    ...sandbox,
    control: createControlClient({ baseUrl: ORIGIN, key: control.key, fetch: ask }),
    controlKey: control.key,
    provider(name) {
      const found = providers.get(toProviderName(name));
      if (found === undefined)
        throw new Error(
          `There is no provider ${name} in this sandbox: it has ${[...providers.keys()].join(', ')}.`,
        );
      return found;
    },
    fetch: ask,
    close: shutdown.close,
    [Symbol.asyncDispose]: shutdown.close,
  };
}

type Parts = ReturnType<typeof createParts>;

/** Creates everything that exists before a server starts. */
function createParts(options: SandboxOptions) {
  const { clock: kind = 'virtual', log = silent } = options;
  const seed = String(options.seed ?? 1);
  const startedAt = kind === 'real' ? Date.now() : (options.startAt ?? START_AT);
  const clock = new SandboxClock(kind, startedAt);
  const providers = new Map<string, StartedProvider>();
  let market: StartedMarketplace | undefined;
  const faults = new Faults({ clock, seed, providers, seeded: createSeededRandom });
  const transitions = new Transitions({ clock, providers });
  const journal = new Journal(() => clock.now());
  const keys = new SandboxKeys();
  const layers: Layer[] = [journal.layer, faults.layer, transitions.layer, journal.serverLayer];
  const router = createRouter({ providers, layers, accountOf: (key) => keys.accountOf(key) });
  const idleness = createIdleness({
    now: () => clock.now(),
    providers,
    market: () => market,
    mayBeStruck: () => faults.isArmed,
    waiting: () => transitions.waiting(),
  });
  const state = stateFileOf(options, seed);
  const changed = (): void => {
    idleness.changed();
    state?.changed();
  };
  faults.onStrike(({ fault }) => {
    changed();
    journal.noteFault(fault);
  });
  return {
    ...{
      seed,
      startedAt,
      clock,
      log,
      providers,
      faults,
      transitions,
      journal,
      keys,
      router,
      idleness,
      state,
    },
    changed,
    written: (): void => state?.written(),
    market: () => market,
    serveMarketplace(started: StartedMarketplace): void {
      market = started;
      router.serveMarketplace(started.app);
    },
    servers: () => [...providers.values(), ...(market === undefined ? [] : [market])],
  };
}

function stateFileOf(options: SandboxOptions, seed: string): SandboxStateFile | undefined {
  const { state, catalog, marketplace, ssh = false } = options;
  const setup = { seed, providers: namesOf(options), catalog, marketplace: Boolean(marketplace), ssh };
  return state === undefined ? undefined : new SandboxStateFile(state, setup);
}

/** Starts the providers, and then the marketplace. */
async function startServers(
  { clock, seed, log, providers, faults, transitions, keys, router, changed, written, ...parts }: Parts,
  options: SandboxOptions,
): Promise<void> {
  const { rateLimits = true, ssh = false, origin = ORIGIN, catalog: catalogFile, marketplace } = options;
  const injection: FaultInjection = {
    carry: (name) => transitions.carry(name, faults.carry(name)),
    probe: (name, own) => faults.probe(name, own),
  };
  const timing = { ...defaultTiming, ...options.timing };
  const common = { clock, seed, origin, log, written };
  const own = { catalogFile, config: configOf(rateLimits), faults: injection, timing, ssh, changed };
  for (const name of namesOf(options)) {
    const provider = await clock.during(startProvider({ ...common, ...own, name }));
    providers.set(name, provider);
    keys.add(provider.apiKey, DEFAULT_ACCOUNT, name);
  }
  if (!marketplace) return;
  // The marketplace's code is loaded only if it is used.
  const { startSandboxMarketplace } = await import('./marketplace.ts');
  const starting = startSandboxMarketplace({
    ...common,
    settings: marketplace === true ? {} : marketplace,
    providers: [...providers.values()],
    send: router.send,
    opened: keys.add.bind(keys),
    hasRateLimits: rateLimits,
  });
  parts.serveMarketplace(await clock.during(starting));
}

function configOf(rateLimits: boolean): Config {
  const { config } = loadConfig({ flags: {}, env: {} });
  return {
    ...config,
    rate_limits: { ...config.rate_limits, enabled: rateLimits },
    // The sandbox's listing is always right: a machine that a test removes is lost at once.
    reconcile: { ...config.reconcile, accept_empty_after_s: 0 },
  };
}

function createShutdown({ state, clock, faults, market, providers }: Parts) {
  let closing: Promise<void> | undefined;
  const end = async (): Promise<void> => {
    await state?.close();
    await clock.exclusively(async () => {
      faults.clear();
      const products = [market(), ...providers.values()];
      for (const product of products) await clock.during(product?.close() ?? Promise.resolve());
      clock.stop(new BrokenConnection());
    });
  };
  return {
    close(): Promise<void> {
      closing ??= end();
      return closing;
    },
    /** @throws {Error} */
    assertOpen(): void {
      if (closing !== undefined) throw new Error('The sandbox is closed.');
    },
  };
}

function createAccounts({ clock, providers, keys, market, changed }: Parts, assertOpen: () => void) {
  async function open(name: string): Promise<SandboxAccount> {
    const at: Record<string, { baseUrl: string; apiKey: string }> = {};
    for (const provider of providers.values()) {
      const apiKey = name === DEFAULT_ACCOUNT ? provider.apiKey : await provider.addAccount(name);
      keys.add(apiKey, name, provider.name);
      at[provider.name] = { baseUrl: provider.baseUrl, apiKey };
    }
    const user = await market()?.addUser(name);
    if (user !== undefined) keys.add(user.apiKey, name, 'marketplace');
    return { name, providers: at, ...(user !== undefined && { marketplace: user }) };
  }

  /** @throws {ApiError} if the name is taken or invalid */
  async function add(wanted?: string): Promise<SandboxAccount> {
    assertOpen();
    await clock.released();
    const refused = (message: string) => invalidRequest([{ path: 'name', message }]);
    const name = keys.take(wanted);
    if (name === undefined) throw refused('there is an account of that name already');
    try {
      const opened = await clock.during(open(name));
      changed();
      return opened;
    } catch (error) {
      keys.giveBack(name);
      throw error instanceof Fatal ? refused(error.message) : error;
    }
  }
  return { open, add };
}

/** Answers like the sandbox's address: the control API, the providers and the marketplace. */
function createFetch(
  { clock, router, state, changed, written }: Parts,
  control: (request: Request) => Promise<Response>,
  assertOpen: () => void,
): Sandbox['fetch'] {
  async function answer(request: Request): Promise<Response> {
    if (isControl(request)) return control(request);
    await clock.released();
    return clock.during(Promise.race([router.route(request), untilAborted(request)]));
  }
  return async (input, init) => {
    assertOpen();
    const request = toRequest(input, init);
    const begunAt = clock.now();
    // Reads have no consequences.
    const isRead = ['GET', 'HEAD'].includes(request.method);
    if (!isRead && isControl(request)) state?.changed();
    else if (!isRead) changed();
    const response = await answer(request);
    if (!isRead || clock.now() !== begunAt) written();
    await state?.isKept();
    return response;
  };
}

/** Restores the state file, and keeps it up to date from now on. Returns the default account, whose user may differ. */
async function restored(
  state: SandboxStateFile,
  all: Snapshots,
  account: SandboxAccount,
): Promise<SandboxAccount> {
  const found = state.read();
  if (found !== undefined) await all.load(found.moment);
  const { marketplace } = account;
  const user = marketplace && { ...marketplace, ...found?.user, baseUrl: marketplace.baseUrl };
  state.keep(async () => ({ moment: await all.save(), user }));
  return { ...account, ...(user !== undefined && { marketplace: user }) };
}

function namesOf({ providers, catalog }: SandboxOptions): string[] {
  const given = providers ?? (catalog === undefined ? ['a'] : []);
  return [...new Set([...given.map(toProviderName), ...(catalog === undefined ? [] : [CUSTOM])])];
}

/** Only the path and the query of a URL are used. */
function toRequest(input: string | URL | Request, init?: RequestInit): Request {
  return new Request(input instanceof Request ? input : new URL(input, ORIGIN), init);
}
