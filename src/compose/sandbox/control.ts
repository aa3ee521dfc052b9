import { ApiError } from '../../contract/errors.ts';
import { DEFAULT_ACCOUNT } from '../../orchestrator/accounts/accounts.ts';
import { CONTROL } from '../../sandbox/control/client.ts';
import type { ControlDeps } from '../../sandbox/control/route.ts';
import { MARKETPLACE, toProviderName } from '../../sandbox/options.ts';
import type { Server } from '../../sandbox/provider.ts';
import { ORIGIN } from '../../sandbox/sandbox.ts';
import type { ScenarioTarget } from '../../sandbox/state/run-scenario.ts';
import type { Accounts } from './accounts.ts';

/** A server and its operator API, by the name of the provider or `marketplace`. */
type Served = (name: string) => { app: Server; operator: Server } | undefined;

interface ControlParts extends Omit<ControlDeps, 'scenarios' | 'operate'> {
  capacity: ScenarioTarget['capacity'] | undefined;
  accounts: Accounts;
  served: Served;
  /** Called before a request that has consequences. */
  changed(): void;
}

/** Creates the control API. It is loaded and assembled on the first request. */
export function createControl({ capacity = 'unlimited', served, changed, ...deps }: ControlParts) {
  const { sandbox, accounts } = deps;
  const { clock, providers } = sandbox;
  const scenarios = { sandbox, capacity, send: sender(sandbox, accounts, served) };
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

/** Sends a step of a scenario directly to the server. */
function sender(
  { clock }: ControlParts['sandbox'],
  accounts: Accounts,
  served: Served,
): ScenarioTarget['send'] {
  return async ({ provider, account = DEFAULT_ACCOUNT, method, path, body }) => {
    const server = served(provider);
    if (server === undefined) throw new Error(`There is no ${provider} in this sandbox.`);
    const headers = new Headers({ Authorization: `Bearer ${await accounts.keyOf(account, provider)}` });
    if (body !== undefined) headers.set('Content-Type', 'application/json');
    const api = path.startsWith('/operator/') ? server.operator : server.app;
    const request = new Request(`${ORIGIN}${path}`, { method, headers, body: JSON.stringify(body) });
    const response = await clock.during(Promise.resolve(api.fetch(request)));
    const text = await response.text();
    return { status: response.status, body: text === '' ? undefined : JSON.parse(text) };
  };
}
