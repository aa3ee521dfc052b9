import { type ApiError, invalidRequest } from '../../contract/errors.ts';
import { nearestRoutes, operationsLike, withoutBase } from '../operations.ts';
import { mostLike } from '../options.ts';
import { isOf, MARKETPLACE } from '../ownership.ts';
import type { Resource, Resources } from '../provider.ts';
import type { Fault } from './fault.ts';

/** What faults can strike. */
export interface Targets {
  /** Providers by name. */
  providers: ReadonlyMap<string, Resources>;
  /** Undefined if there is no marketplace. */
  market(): Resources | undefined;
  /** The names of the accounts. */
  accounts(): readonly string[];
  /** Whether the sandbox is served over HTTP: its clients make no TLS handshake. */
  isServedWithoutTls(): boolean;
}

interface Scope {
  provider?: string | undefined;
  account?: string | undefined;
  route?: string | string[] | undefined;
  instance?: string | undefined;
  volume?: string | undefined;
}

type Kind = Resource['kind'];
const kinds: readonly Kind[] = ['instance', 'volume'];

/** More names than this are not listed. */
const MAX_LISTED = 10;
/** The calls of the driver that are of the whole platform. */
const LISTINGS: readonly string[] = ['list', 'volumes.list', 'inventory'];

/** Refuses a provider or an account that the sandbox does not have. @throws {ApiError} */
export function assertPlace({ provider, account }: Scope, targets: Targets): void {
  const servers = namesOf(targets);
  if (provider !== undefined && !servers.includes(provider))
    throw refused('provider', `expected one of ${servers.join(', ')}`);
  const accounts = targets.accounts();
  if (account !== undefined && !accounts.includes(account))
    throw refused('account', `there is no account ${account}: ${thereIs(accounts, account)}`);
}

/**
 * Refuses a fault that can never strike, because its account, route, instance or volume does not exist, or because they
 * exclude each other.
 * @throws {ApiError} with what is wrong, and what there is
 */
export async function assertCanStrike(fault: Fault, scope: Scope, targets: Targets): Promise<void> {
  assertPlace(scope, targets);
  if (fault.layer === 'tls') return assertOfAddress(scope, targets);
  const { provider } = scope;
  const providers = [...targets.providers.keys()];
  if (provider === MARKETPLACE && !isOfRequests(fault))
    throw refused(
      'provider',
      `this fault strikes only at providers: expected one of ${providers.join(', ')}`,
    );
  if (scope.instance !== undefined && scope.volume !== undefined)
    throw refused('volume', 'give an instance or a volume, not both');
  const servers = provider === undefined ? providers : [provider];
  if (isOfRequests(fault)) assertRoutes(fault, scope, servers, targets);
  else assertCalls(fault, scope);
  for (const kind of kinds)
    await assertResource(fault, { ...scope, kind, id: scope[kind] }, servers, targets);
}

/** A handshake is over before the client says what it wants, and all servers have one address. */
function assertOfAddress(scope: Scope, { isServedWithoutTls }: Targets): void {
  if (isServedWithoutTls())
    throw refused(
      'fault',
      'this sandbox is served over HTTP: serve it with --tls, or with listen({ tls: true })',
    );
  for (const part of ['provider', 'account', 'route', ...kinds] as const)
    if (scope[part] !== undefined)
      throw refused(part, 'leave it out: a fault of TLS strikes the whole sandbox');
}

function isOfRequests({ layer }: Fault): boolean {
  return layer === 'connection' || layer === 'answer' || layer === 'status';
}

function assertRoutes(fault: Fault, scope: Scope, servers: readonly string[], targets: Targets): void {
  const routes = [scope.route ?? fault.on].flat();
  const operations = (route: string) => servers.flatMap((server) => operationsLike(server, route));
  const missing = routes.filter((route) => operations(route).length === 0);
  if (scope.route === undefined && missing.length === routes.length)
    throw refused('route', `${servers.join(', ')} has none of ${routes.join(', ')}: give a route`);
  if (scope.route !== undefined && missing[0] !== undefined)
    throw refused('route', noSuchRoute(missing[0], servers, targets));
  const namesA = (kind: Kind): boolean =>
    routes.some((route) => route === '*' || operations(route).some(({ path }) => pathsOf[kind].test(path))) ||
    ('changesLists' in fault && routes.some((route) => /^(GET|\*) [^{]*$/.test(route)));
  for (const kind of kinds)
    if (scope[kind] !== undefined && !namesA(kind))
      throw refused(
        'route',
        `${routes.join(', ')} concerns no single ${kind}: leave out ${kind}, or give another route`,
      );
}

const pathsOf: Record<Kind, RegExp> = {
  instance: /\/(instances|deployments)\/\{/,
  volume: /\/volumes\/\{/,
};

function noSuchRoute(route: string, servers: readonly string[], targets: Targets): string {
  const elsewhere = namesOf(targets).filter((server) => operationsLike(server, route).length > 0);
  if (elsewhere.length > 0) return `only ${elsewhere.join(', ')} has ${route}: give that as provider`;
  const [method = '', path = ''] = route.split(' ');
  const [server = ''] = servers;
  const base = server === MARKETPLACE ? '/api' : '/v1';
  const nearest = nearestRoutes(server, method, `${base}${withoutBase(path)}`);
  const shown = nearest.map((one) => `${one.method} ${withoutBase(one.path)}`);
  return `${server} has no ${route}: the nearest are ${shown.join(', ')}`;
}

function assertCalls(fault: Fault, scope: Scope): void {
  const { layer, on } = fault;
  if ('isShared' in fault && scope.account !== undefined)
    throw refused('account', 'all accounts share the platform’s credential: leave it out');
  const calls = layer === 'platform' ? [scope.route ?? on].flat() : [];
  const isOfKind = (kind: Kind): boolean =>
    layer === 'platform' ? calls.some((call) => call === '*' || kindOf(call) === kind) : kind === 'instance';
  for (const kind of kinds)
    if (scope[kind] !== undefined && !isOfKind(kind))
      throw refused(
        kind,
        `this fault strikes ${calls.join(', ') || 'machines'}, and no single ${kind}: leave it out`,
      );
  if (scope.account !== undefined && layer === 'platform' && !kinds.some(isOfKind))
    throw refused('account', `${calls.join(', ')} concerns the whole platform, and no account: leave it out`);
}

/** The kind of resource that a call of the driver concerns. */
function kindOf(call: string): Kind | undefined {
  if (LISTINGS.includes(call)) return undefined;
  return call.startsWith('volumes.') ? 'volume' : 'instance';
}

async function assertResource(
  fault: Fault,
  { kind, id, account }: Scope & { kind: Kind; id: string | undefined },
  servers: readonly string[],
  targets: Targets,
): Promise<void> {
  if (id === undefined) return;
  const at = (server: string): Resources | undefined =>
    server === MARKETPLACE ? targets.market() : targets.providers.get(server);
  const found = await firstOf(servers, (server) => at(server)?.resource(id));
  if (found?.kind === kind) {
    if (account !== undefined && !isOfRequests(fault) && !isOf(account, found))
      throw refused(kind, `${id} is of the account ${found.account}, not of ${account}`);
    return;
  }
  if (found !== undefined) throw refused(kind, `${id} is a ${found.kind}: give it as ${found.kind}`);
  const others = namesOf(targets).filter((server) => !servers.includes(server));
  const elsewhere = await firstOf(others, async (server) => {
    const resource = await at(server)?.resource(id);
    return resource && { ...resource, server };
  });
  if (elsewhere !== undefined) throw refused(kind, isElsewhere(id, elsewhere));
  const ids = (await Promise.all(servers.map((server) => at(server)?.resourceIds(kind) ?? []))).flat();
  throw refused(kind, `there is no ${kind} ${id} at ${servers.join(', ')}: ${thereIs(ids, id)}`);
}

function isElsewhere(id: string, { server, machine }: Resource & { server: string }): string {
  const there = `${id} is at ${server}: give that as provider`;
  return machine === undefined ? there : `${there}, or its instance ${machine.id} at ${machine.provider}`;
}

async function firstOf<T>(
  servers: readonly string[],
  ask: (server: string) => Promise<T | undefined> | undefined,
): Promise<T | undefined> {
  for (const server of servers) {
    const answer = await ask(server);
    if (answer !== undefined) return answer;
  }
  return undefined;
}

function namesOf({ providers, market }: Targets): string[] {
  return [...providers.keys(), ...(market() === undefined ? [] : [MARKETPLACE])];
}

function thereIs(names: readonly string[], wanted: string): string {
  if (names.length === 0) return 'there is none';
  const nearest = mostLike(wanted, names);
  const suggestion = nearest === undefined ? '' : `did you mean ${nearest}? `;
  const more = names.length > MAX_LISTED ? ` and ${names.length - MAX_LISTED} more` : '';
  return `${suggestion}there is ${names.slice(0, MAX_LISTED).join(', ')}${more}`;
}

function refused(path: string, message: string): ApiError {
  return invalidRequest([{ path, message }]);
}
