import { loadConfig } from '../../config/load.ts';
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
  const {
    seed: given = 1,
    clock: kind = 'virtual',
    log = silent,
    rateLimits = true,
    ssh = false,
    origin = ORIGIN,
  } = options;
  const seed = String(given);
  const startedAt = kind === 'real' ? Date.now() : (options.startAt ?? START_AT);
  const clock = new SandboxClock(kind, startedAt);
  const providers = new Map<string, StartedProvider>();
  const faults = new Faults({ clock, seed, providers, seeded: createSeededRandom });
  const transitions = new Transitions({ clock, providers });
  const injection: FaultInjection = {
    carry: (name) => transitions.carry(name, faults.carry(name)),
    probe: (name, own) => faults.probe(name, own),
  };
  const journal = new Journal(() => clock.now());
  const layers: Layer[] = [journal.layer, faults.layer, transitions.layer, journal.serverLayer];
  const timing = { ...defaultTiming, ...options.timing };
  const { config: defaults } = loadConfig({ flags: {}, env: {} });
  const config = {
    ...defaults,
    rate_limits: { ...defaults.rate_limits, enabled: rateLimits },
    // The platform's listing is always right: a machine that a test removes is lost at once, even if it is the only
    // one.
    reconcile: { ...defaults.reconcile, accept_empty_after_s: 0 },
  };
  const keys = new SandboxKeys();
  const opened = keys.add.bind(keys);
  const router = createRouter({ providers, layers, accountOf: (key) => keys.accountOf(key) });
  let market: StartedMarketplace | undefined;
  const idleness = createIdleness({
    now: () => clock.now(),
    providers,
    market: () => market,
    mayBeStruck: () => faults.isArmed,
    waiting: () => transitions.waiting(),
  });
  const state =
    options.state === undefined
      ? undefined
      : new SandboxStateFile(options.state, {
          seed,
          providers: namesOf(options),
          catalog: options.catalog,
          marketplace: Boolean(options.marketplace),
          ssh,
        });
  const changed = (): void => {
    idleness.changed();
    state?.changed();
  };
  const written = (): void => state?.written();
  faults.onStrike(({ fault }) => {
    changed();
    journal.noteFault(fault);
  });
  let closing: Promise<void> | undefined;

  async function end(): Promise<void> {
    await state?.close();
    await clock.exclusively(async () => {
      faults.clear();
      const products = [market, ...providers.values()];
      for (const product of products) await clock.during(product?.close() ?? Promise.resolve());
      clock.stop(new BrokenConnection());
    });
  }
  function close(): Promise<void> {
    closing ??= end();
    return closing;
  }
  /** @throws {Error} */
  function assertOpen(): void {
    if (closing !== undefined) throw new Error('The sandbox is closed.');
  }

  try {
    for (const name of namesOf(options)) {
      const parts = {
        name,
        catalogFile: options.catalog,
        config,
        clock,
        seed,
        faults: injection,
        log,
        timing,
        ssh,
        origin,
        changed,
        written,
      };
      const provider = await clock.during(startProvider(parts));
      providers.set(name, provider);
      opened(provider.apiKey, DEFAULT_ACCOUNT, name);
    }
    if (options.marketplace) {
      // The marketplace's code is loaded only if it is used.
      const { startSandboxMarketplace } = await import('./marketplace.ts');
      const settings = options.marketplace === true ? {} : options.marketplace;
      const { send } = router;
      const parts = { settings, providers: [...providers.values()], send, opened, clock, seed, origin, log };
      market = await clock.during(startSandboxMarketplace({ ...parts, hasRateLimits: rateLimits, written }));
      router.serveMarketplace(market.app);
    }
  } catch (error) {
    await close();
    throw error;
  }

  clock.skipIdle(idleness);

  async function account(name: string): Promise<SandboxAccount> {
    const at: Record<string, { baseUrl: string; apiKey: string }> = {};
    for (const provider of providers.values()) {
      const apiKey = name === DEFAULT_ACCOUNT ? provider.apiKey : await provider.addAccount(name);
      opened(apiKey, name, provider.name);
      at[provider.name] = { baseUrl: provider.baseUrl, apiKey };
    }
    const user = await market?.addUser(name);
    if (user !== undefined) opened(user.apiKey, name, 'marketplace');
    return { name, providers: at, ...(user !== undefined && { marketplace: user }) };
  }

  /** @throws {ApiError} if the name is taken or invalid */
  async function addAccount(wanted?: string): Promise<SandboxAccount> {
    assertOpen();
    await clock.released();
    const refused = (message: string) => invalidRequest([{ path: 'name', message }]);
    const name = keys.take(wanted);
    if (name === undefined) throw refused('there is an account of that name already');
    try {
      const opened = await clock.during(account(name));
      changed();
      return opened;
    } catch (error) {
      keys.giveBack(name);
      throw error instanceof Fatal ? refused(error.message) : error;
    }
  }

  const started = await clock.during(account(DEFAULT_ACCOUNT));
  const running = [...providers.values(), ...(market === undefined ? [] : [market])];
  const parts = [faults, transitions, ...running, keys];
  const snapshots = new Snapshots(clock, [...parts, journal], changed);
  await snapshots.begin();
  const kept =
    state &&
    (await restored(state, new Snapshots(clock, parts, changed), started).catch(async (error) => {
      await close();
      throw error;
    }));
  const sandbox = {
    seed,
    clock,
    providers,
    mails: market?.mails ?? [],
    faults,
    weather: new Weather(faults, seed, startedAt),
    transitions,
    defaultAccount: kept ?? started,
    account: addAccount,
  };
  const { key, app } = createControl({ sandbox, keys, journal, snapshots, market, log });

  async function answer(request: Request): Promise<Response> {
    if (isControl(request)) return app(request);
    await clock.released();
    return clock.during(Promise.race([router.route(request), untilAborted(request)]));
  }
  async function ask(input: string | URL | Request, init?: RequestInit): Promise<Response> {
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
  }

  return {
    ...sandbox,
    control: createControlClient({ baseUrl: ORIGIN, key, fetch: ask }),
    controlKey: key,
    provider(name) {
      const found = providers.get(toProviderName(name));
      if (found === undefined)
        throw new Error(
          `There is no provider ${name} in this sandbox: it has ${[...providers.keys()].join(', ')}.`,
        );
      return found;
    },
    fetch: ask,
    close,
    [Symbol.asyncDispose]: close,
  };
}

/**
 * Loads the state from the file, and keeps it up to date from now on. Returns the default account, whose user may
 * differ.
 */
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
