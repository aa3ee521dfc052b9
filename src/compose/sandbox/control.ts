import { ApiError } from '../../contract/errors.ts';
import { DEFAULT_ACCOUNT } from '../../orchestrator/accounts/accounts.ts';
import { CONTROL } from '../../sandbox/control/client.ts';
import type { ControlDeps } from '../../sandbox/control/route.ts';
import { MARKETPLACE, toProviderName } from '../../sandbox/options.ts';
import type { Server } from '../../sandbox/provider.ts';
import { ORIGIN } from '../../sandbox/sandbox.ts';
import type { ScenarioTarget } from '../../sandbox/state/run-scenario.ts';
import type { Part } from '../../sandbox/state/snapshots.ts';

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

  accounts(): readonly string[] {
    return [...this.#accounts];
  }

  accountOf(apiKey: string): string | undefined {
    return this.#byKey.get(apiKey)?.account;
  }

  /** The name of a key, such as `provider-a/default`. Undefined if it is not of this sandbox. */
  nameOf(apiKey: string): string | undefined {
    const found = this.#byKey.get(apiKey);
    return found && `${found.provider}/${found.account}`;
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

/** A server and its operator API, by the name of the provider or `marketplace`. */
type Served = (name: string) => { app: Server; operator: Server } | undefined;

interface ControlParts extends Omit<ControlDeps, 'scenarios' | 'operate'> {
  capacity: ScenarioTarget['capacity'];
  keys: SandboxKeys;
  served: Served;
  /** Called before a request that has consequences. */
  changed(): void;
}

/** Creates the control API. It is loaded and assembled on the first request. */
export function createControl({ capacity, served, changed, ...deps }: ControlParts) {
  const { sandbox, keys } = deps;
  const { clock, providers } = sandbox;
  const scenarios = { capacity, ...scenarioTarget(sandbox, keys, served) };
  const servers = [...providers.keys(), ...(served(MARKETPLACE) === undefined ? [] : [MARKETPLACE])];
  async function operate(server: string, path: string, request: Request): Promise<Response> {
    const name = toProviderName(server);
    const operator = served(name)?.operator;
    if (operator === undefined)
      throw new ApiError('not_found', `This sandbox has no ${name}: it has ${servers.join(', ')}.`);
    await clock.released();
    if (request.method !== 'GET') changed();
    const { search } = new URL(request.url);
    const own = new Request(`${ORIGIN}${path}${search}`, request);
    return clock.during(Promise.resolve(operator.fetch(own)));
  }
  const load = async () => {
    const { createControlApp } = await import('../../sandbox/control/app.ts');
    return createControlApp({ ...deps, scenarios, operate });
  };
  let app: ReturnType<typeof load> | undefined;
  return async (request: Request): Promise<Response> => {
    app ??= load();
    return (await app).fetch(request);
  };
}

const CONTROL_PATH = new RegExp(`^(/sandboxes/[^/]+)*${CONTROL}/`);

/** Whether the request is for a control API: that of the sandbox, or of one in it. */
export function isControl({ url }: Request): boolean {
  return CONTROL_PATH.test(new URL(url).pathname);
}

/** The target of scenarios. Requests go directly to the servers. */
function scenarioTarget(
  { clock, providers, faults, transitions, account: open }: ControlParts['sandbox'],
  keys: SandboxKeys,
  served: Served,
): Omit<ScenarioTarget, 'capacity'> {
  /** Creates an account that a step names for the first time. */
  const ensureAccount = async (account: string | undefined): Promise<void> => {
    if (account !== undefined && !keys.accounts().includes(account)) await open(account);
  };
  return {
    providers: [...providers.keys()],
    now: () => clock.now(),
    arm: async ({ fault, ...options }) => void (await faults.arm(fault, options)),
    setTransitions: (setting) => transitions.set(setting),
    advance: (ms) => clock.advance(ms),
    advanceUntilIdle: async () => void (await clock.advanceUntilIdle()),
    async send({ provider, account = DEFAULT_ACCOUNT, method, path, body }) {
      const server = served(provider);
      if (server === undefined) throw new Error(`There is no ${provider} in this sandbox.`);
      await ensureAccount(account);
      const api = path.startsWith('/operator/') ? server.operator : server.app;
      const request = new Request(`${ORIGIN}${path}`, {
        method,
        headers: {
          Authorization: `Bearer ${keys.keyOf(account, provider)}`,
          ...(body !== undefined && { 'Content-Type': 'application/json' }),
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      const response = await clock.during(Promise.resolve(api.fetch(request)));
      const text = await response.text();
      return { status: response.status, body: text === '' ? undefined : JSON.parse(text) };
    },
  };
}
