import { loadConfig } from '../../config/load.ts';
import type { Config } from '../../config/schema.ts';
import { createSeededRandom } from '../../drivers/kit/seeded-random.ts';
import { DEFAULT_ACCOUNT } from '../../orchestrator/accounts/accounts.ts';
import { Fatal } from '../../ports/errors.ts';
import type { Log } from '../../ports/log.ts';
import { realNow } from '../../ports/timers.ts';
import { systemRandom } from '../../runtime/system.ts';
import { SandboxClock } from '../../sandbox/clock.ts';
import { createControlClient } from '../../sandbox/control/client.ts';
import type { ArmedView } from '../../sandbox/faults/arming.ts';
import { BrokenConnection, untilAborted } from '../../sandbox/faults/connection.ts';
import { Faults } from '../../sandbox/faults/faults.ts';
import { KeptHeaders } from '../../sandbox/journal/entry.ts';
import { Journal } from '../../sandbox/journal/journal.ts';
import {
  assertNode,
  assertOptions,
  MARKETPLACE,
  type SandboxOptions,
  START_AT,
  toProviderName,
  toTiming,
} from '../../sandbox/options.ts';
import type { SandboxParts } from '../../sandbox/parts.ts';
import type { Layer } from '../../sandbox/provider.ts';
import { type ClientSocket, createRouter } from '../../sandbox/router.ts';
import { ORIGIN, type Sandbox, type SandboxListener } from '../../sandbox/sandbox.ts';
import { Snapshots } from '../../sandbox/state/snapshots.ts';
import { Transitions } from '../../sandbox/transitions/transitions.ts';
import { Accounts } from './accounts.ts';
import { createControl, isControl } from './control.ts';
import { createIdleness } from './idleness.ts';
import type { StartedMarketplace } from './marketplace.ts';
import { CUSTOM, type StartedProvider, startProvider } from './provider.ts';
import { type Ask, type OpenedSandbox, Sandboxes } from './sandboxes.ts';

export type { SandboxClock } from '../../sandbox/clock.ts';
export {
  type ControlClientOptions,
  createControlClient,
  type SandboxControl,
} from '../../sandbox/control/client.ts';
export type { Duration } from '../../sandbox/duration.ts';
export type { Arming } from '../../sandbox/faults/arming.ts';
export type { FaultName } from '../../sandbox/faults/catalog/catalog.ts';
export type { Assertion } from '../../sandbox/journal/assertions.ts';
export type { JournalEntry } from '../../sandbox/journal/entry.ts';
export type { JournalFilter } from '../../sandbox/journal/filter.ts';
export type { MarketplaceOperator, ProviderOperator } from '../../sandbox/operate/client.ts';
export type { MarketplaceSettings, SandboxOptions, Timing } from '../../sandbox/options.ts';
export type { SandboxAccount, SandboxMail, SandboxUser } from '../../sandbox/parts.ts';
export type { SandboxProvider } from '../../sandbox/provider.ts';
export type { ListenOptions, Sandbox, SandboxListener } from '../../sandbox/sandbox.ts';
export type { ScenarioInput } from '../../sandbox/state/scenario-format.ts';
export type { TransitionSetting } from '../../sandbox/transitions/transitions.ts';
export type { RuleResult, Verdict, VerdictOptions } from '../../sandbox/verdict/verdict.ts';

const silent: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
};

/** Starts providers in this process, in memory. @throws {Fatal} for a provider without a bundled profile */
export async function createSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  return (await openSandbox(options)).sandbox;
}

/** Where clients reach a sandbox that another one serves. */
interface Place {
  origin(): string;
  controlOrigin(): string;
  ca(): Promise<string | undefined>;
}

export async function openSandbox(options: SandboxOptions, place?: Place): Promise<OpenedSandbox> {
  assertNode(process.versions.node);
  assertOptions(options);
  const { signal, control_key: key = `control_${systemRandom.bytes(24).toString('base64url')}` } = options;
  const parts = createParts(options, place);
  const { clock, changed, journal, faults, transitions, providers, accounts, seed } = parts;
  const sandboxes = new Sandboxes((given, path) => {
    const of = (origin: () => string) => () => `${origin()}${path}`;
    const below = { origin: of(parts.origin), controlOrigin: of(parts.controlOrigin), ca: parts.ca };
    return openSandbox({ ...options, signal: undefined, ...given, control_key: key }, below);
  });
  const { assertOpen, close: shutDown } = createShutdown(parts, sandboxes);
  await startServers(parts, options).catch(async (error: unknown) => {
    await shutDown();
    throw error;
  });
  clock.skipIdle(parts.idleness);
  const defaultAccount = await clock.during(accounts.open(DEFAULT_ACCOUNT));
  const saved = [faults, transitions, ...parts.servers(), accounts, journal];
  const snapshots = new Snapshots(clock, saved, changed);
  await snapshots.begin();
  const market = parts.market();
  const sandbox: SandboxParts = {
    seed,
    clock,
    providers,
    mails: market?.mails ?? [],
    faults,
    transitions,
    defaultAccount,
    async account(name) {
      assertOpen();
      return accounts.add(name);
    },
  };
  const control = createControl({
    ...parts,
    key,
    sandbox,
    snapshots,
    sandboxes,
    capacity: options.capacity,
    served: (name) => (name === MARKETPLACE ? market : providers.get(name)),
  });
  const ask = createFetch(parts, sandboxes, control, assertOpen);
  let ended: Promise<ArmedView[]> | undefined;
  const end = (): Promise<ArmedView[]> => {
    const untriggered = faults.untriggered();
    ended ??= shutDown().then(() => untriggered);
    return ended;
  };
  const close = async (): Promise<void> => {
    const isFirst = ended === undefined;
    const untriggered = await end();
    if (isFirst && untriggered.length > 0) throw new Error(neverTriggered(untriggered));
  };
  const endNow = (): void => void end().catch(() => undefined);
  signal?.addEventListener('abort', endNow, { once: true });
  if (signal?.aborted) endNow();
  const client = createControlClient({ baseUrl: ORIGIN, key, fetch: ask });
  const whole: Sandbox = {
    ...sandbox,
    control: client,
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
    listen: createListen(parts, ask, assertOpen),
    verdict: client.verdict,
    close,
    [Symbol.asyncDispose]: close,
  };
  return { sandbox: whole, ask, end };
}

function neverTriggered(untriggered: readonly ArmedView[]): string {
  const lines = untriggered.map(({ fault, options: { must_trigger: _must, ...scope }, seen }) => {
    return `  ${fault} ${JSON.stringify(scope)}, after ${seen} occasions`;
  });
  return `The test armed faults that never triggered (must_trigger: false allows that):\n${lines.join('\n')}`;
}

/** Where clients reach the sandbox. */
interface Served {
  /** Undefined: only through its `fetch`. */
  origin: string | undefined;
  controlOrigin: string | undefined;
  listener: Promise<SandboxListener> | undefined;
}

type Parts = ReturnType<typeof createParts>;

/** Creates everything that exists before a server starts. */
function createParts(options: SandboxOptions, place: Place | undefined) {
  const { clock: kind = 'virtual', log = silent } = options;
  const seed = String(options.seed ?? 1);
  const startedAt = kind === 'real' ? realNow() : (options.start_at ?? START_AT);
  const clock = new SandboxClock(kind, startedAt);
  const providers = new Map<string, StartedProvider>();
  let market: StartedMarketplace | undefined;
  const changed = (): void => idleness.changed();
  const accounts = new Accounts({ clock, providers, market: () => market, changed });
  const served: Served = { origin: options.origin, controlOrigin: undefined, listener: undefined };
  const origin = () => place?.origin() ?? served.origin ?? ORIGIN;
  const transitions = new Transitions({ clock, providers });
  const held = () => transitions.underWay();
  const servers = () => [...providers.keys(), ...(market === undefined ? [] : [MARKETPLACE])];
  const mustTrigger = options.must_trigger ?? false;
  const faults = new Faults({
    ...{ clock, seed, providers, servers, held, mustTrigger },
    seeded: createSeededRandom,
    triggered(fault) {
      changed();
      journal.noteFault(fault);
    },
  });
  const headers = new KeptHeaders((key) => accounts.nameOf(key));
  const journal = new Journal(() => clock.now(), { headers });
  const layers: Layer[] = [journal.layer, faults.layer, transitions.layer, journal.serverLayer];
  const accountOf = accounts.accountOf.bind(accounts);
  const router = createRouter({ providers, layers, accountOf });
  const idleness = createIdleness({
    now: () => clock.now(),
    providers,
    market: () => market,
    faults,
  });
  return {
    served,
    origin,
    controlOrigin: () => place?.controlOrigin() ?? served.controlOrigin ?? origin(),
    ca: async () => (place === undefined ? (await served.listener)?.ca : place.ca()),
    seed,
    clock,
    log,
    providers,
    faults,
    transitions,
    journal,
    accounts,
    router,
    idleness,
    changed,
    market: () => market,
    serveMarketplace(started: StartedMarketplace): void {
      market = started;
      router.serveMarketplace(started.app);
    },
    servers: () => [...providers.values(), ...(market === undefined ? [] : [market])],
  };
}

/** Starts the providers, and then the marketplace. */
async function startServers(parts: Parts, options: SandboxOptions): Promise<void> {
  const { clock, providers, accounts, router } = parts;
  const { rate_limits: hasRateLimits = true, ssh = false, capacity = 'unlimited', marketplace } = options;
  const common = {
    ...parts,
    catalogFile: options.catalog,
    capacity,
    config: configOf(hasRateLimits),
    timing: toTiming(options.timing),
    ssh,
  };
  for (const name of namesOf(options)) {
    const provider = await clock.during(startProvider({ ...common, name }));
    providers.set(name, provider);
    accounts.register(provider.apiKey, DEFAULT_ACCOUNT, name);
  }
  if (!marketplace) return;
  // The marketplace's code is loaded only if it is used.
  const { startSandboxMarketplace } = await import('./marketplace.ts');
  const starting = startSandboxMarketplace({
    ...parts,
    settings: marketplace === true ? {} : marketplace,
    providers: [...providers.values()],
    send: router.send,
    opened: accounts.register.bind(accounts),
    hasRateLimits,
  });
  parts.serveMarketplace(await clock.during(starting));
}

function configOf(rateLimits: boolean): Config {
  const { config } = loadConfig({ flags: {}, env: {} });
  return {
    ...config,
    // The router reports each client's address.
    server: { ...config.server, trusted_proxies: 1 },
    rate_limits: rateLimits && config.rate_limits,
  };
}

const CLOSED = 'The sandbox is closed.';

function createShutdown({ served, clock, faults, market, providers }: Parts, sandboxes: Sandboxes) {
  let closing: Promise<void> | undefined;
  const end = async (): Promise<void> => {
    await (await served.listener)?.close();
    await sandboxes.endAll();
    clock.breakOff(new Error(CLOSED));
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
      if (closing !== undefined) throw new Error(CLOSED);
    },
  };
}

/** Answers like the sandbox's address: the control API, the providers and the marketplace. */
function createFetch(
  { clock, router, faults, changed }: Parts,
  sandboxes: Sandboxes,
  control: (request: Request) => Promise<Response>,
  assertOpen: () => void,
): Ask {
  async function answer(request: Request, socket: ClientSocket | undefined): Promise<Response> {
    if (isControl(request)) return control(request);
    const broken = socket === undefined ? faults.handshake() : undefined;
    if (broken !== undefined) throw new BrokenConnection(broken.code);
    await clock.released();
    return clock.during(Promise.race([router.route(request, socket), untilAborted(request)]));
  }
  return async (input, init, socket) => {
    assertOpen();
    const request = toRequest(input, init);
    const inner = sandboxes.find(request);
    if (inner !== undefined) return inner.ask(inner.request, undefined, socket);
    // Reads have no consequences.
    const isRead = ['GET', 'HEAD'].includes(request.method);
    if (!isRead && !isControl(request)) changed();
    return answer(request, socket);
  };
}

/** At most one listener at a time. Its address is the origin of base URLs, unless one is given. */
function createListen({ served, faults, log }: Parts, ask: Ask, assertOpen: () => void): Sandbox['listen'] {
  return async (options = {}) => {
    assertOpen();
    if (served.listener !== undefined)
      throw new Fatal('The sandbox is served already: close its listener first.');
    const { origin: given } = served;
    const ended = (): void => {
      served.listener = undefined;
      served.origin = given;
      served.controlOrigin = undefined;
    };
    // The code of the server is loaded only if it is used.
    served.listener = import('./listen.ts').then(async ({ listenOn, listenOnTls }) => {
      const serve = (request: Request, socket: ClientSocket) => ask(request, undefined, socket);
      const { tls = false, ...address } = options;
      const { close: stop, ...rest } = tls
        ? await listenOnTls(serve, address, log, faults)
        : await listenOn(serve, address, log);
      const close = (): Promise<void> => stop().finally(ended);
      return { controlOrigin: rest.origin, ...rest, close, [Symbol.asyncDispose]: close };
    });
    try {
      const listener = await served.listener;
      served.origin ??= listener.origin;
      served.controlOrigin = listener.controlOrigin;
      return listener;
    } catch (error) {
      ended();
      throw error;
    }
  };
}

function namesOf({ providers, catalog }: SandboxOptions): string[] {
  const given = providers ?? (catalog === undefined ? ['a'] : []);
  return [...new Set([...given.map(toProviderName), ...(catalog === undefined ? [] : [CUSTOM])])];
}

/** Only the path and the query of a URL are used. */
function toRequest(input: string | URL | Request, init?: RequestInit): Request {
  return new Request(input instanceof Request ? input : new URL(input, ORIGIN), init);
}
