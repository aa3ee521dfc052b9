import { createSeededRandom } from '../../drivers/kit/seeded-random.ts';
import { DEFAULT_ACCOUNT } from '../../orchestrator/accounts/accounts.ts';
import type { Log } from '../../ports/log.ts';
import { CONTROL } from '../../sandbox/control/client.ts';
import type { Journal } from '../../sandbox/journal/journal.ts';
import { ORIGIN, type Sandbox } from '../../sandbox/sandbox.ts';
import type { ScenarioTarget } from '../../sandbox/state/run-scenario.ts';
import type { Part, Snapshots } from '../../sandbox/state/snapshots.ts';

/** A key, its account, and its provider or `marketplace`. */
interface KeyOfAccount {
  apiKey: string;
  account: string;
  provider: string;
}

/** The keys of the sandbox's accounts. */
export class SandboxKeys implements Part<readonly KeyOfAccount[]> {
  #byKey = new Map<string, KeyOfAccount>();
  #accounts = new Set<string>();

  add(apiKey: string, account: string, provider: string): void {
    this.#byKey.set(apiKey, { apiKey, account, provider });
    this.#accounts.add(account);
  }

  /** Reserves a name for an account, by default the first free `account-N`. Returns undefined if it is taken. */
  take(name = this.#freeName()): string | undefined {
    if (this.#accounts.has(name)) return undefined;
    this.#accounts.add(name);
    return name;
  }

  giveBack(name: string): void {
    this.#accounts.delete(name);
  }

  accountOf(apiKey: string): string | undefined {
    return this.#byKey.get(apiKey)?.account;
  }

  keyOf(account: string, provider: string): string | undefined {
    return this.all().find((one) => one.account === account && one.provider === provider)?.apiKey;
  }

  all(): readonly KeyOfAccount[] {
    return [...this.#byKey.values()];
  }

  save(): readonly KeyOfAccount[] {
    return this.all();
  }

  load(saved: readonly KeyOfAccount[]): void {
    this.#byKey = new Map(saved.map((one) => [one.apiKey, one]));
    this.#accounts = new Set(saved.map(({ account }) => account));
  }

  #freeName(): string {
    for (let number = 1; ; number++) if (!this.#accounts.has(`account-${number}`)) return `account-${number}`;
  }
}

type Server = { fetch(request: Request): Response | Promise<Response> };

interface ControlParts {
  sandbox: Pick<
    Sandbox,
    | 'seed'
    | 'clock'
    | 'providers'
    | 'mails'
    | 'faults'
    | 'weather'
    | 'transitions'
    | 'account'
    | 'defaultAccount'
  >;
  keys: SandboxKeys;
  journal: Journal;
  snapshots: Snapshots;
  market: { app: Server } | undefined;
  log: Log;
}

/** Creates the control API and its key. The API is loaded and assembled on the first request. */
export function createControl({ sandbox, keys, journal, snapshots, market, log }: ControlParts) {
  const key = `control_${createSeededRandom(`${sandbox.seed}/control`).bytes(24).toString('base64url')}`;
  const scenarios = scenarioTarget(sandbox, keys, market?.app);
  const load = async () => {
    const { createControlApp } = await import('../../sandbox/control/app.ts');
    return createControlApp({ key, sandbox, keys: () => keys.all(), journal, snapshots, scenarios, log });
  };
  let app: ReturnType<typeof load> | undefined;
  return {
    key,
    app: async (request: Request): Promise<Response> => {
      app ??= load();
      return (await app).fetch(request);
    },
  };
}

export function isControl({ url }: Request): boolean {
  return new URL(url).pathname.startsWith(`${CONTROL}/`);
}

/** The target of scenarios. Requests go directly to the servers. */
function scenarioTarget(
  { clock, providers, faults, weather, transitions, account: open }: ControlParts['sandbox'],
  keys: SandboxKeys,
  marketplace: Server | undefined,
): ScenarioTarget {
  return {
    providers: [...providers.keys()],
    now: () => clock.now(),
    arm: async ({ fault, ...options }) => void (await faults.arm(fault, options)),
    startWeather: async (options) => void (await weather.start(options)),
    setTransitions: (setting) => transitions.set(setting),
    advance: (ms) => clock.advance(ms),
    advanceUntilIdle: async () => void (await clock.advanceUntilIdle()),
    async send({ provider, account = DEFAULT_ACCOUNT, method, path, body }) {
      const server = provider === 'marketplace' ? marketplace : providers.get(provider)?.app;
      if (server === undefined) throw new Error(`There is no ${provider} in this sandbox.`);
      if (keys.keyOf(account, provider) === undefined) await open(account);
      const request = new Request(`${ORIGIN}${path}`, {
        method,
        headers: {
          Authorization: `Bearer ${keys.keyOf(account, provider)}`,
          ...(body !== undefined && { 'Content-Type': 'application/json' }),
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      const response = await clock.during(Promise.resolve(server.fetch(request)));
      const text = await response.text();
      return { status: response.status, body: text === '' ? undefined : JSON.parse(text) };
    },
  };
}
