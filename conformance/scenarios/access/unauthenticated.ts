import { readPackageJson } from '../../contract/package.ts';
import type { Call } from '../../http/call.ts';
import { isObject } from '../../text/json.ts';
import { knownRegions } from '../catalog/regions.ts';
import { inDrawnOrder } from '../drawn-order.ts';
import type { Scenario } from '../scenario.ts';
import type { Session } from '../session.ts';

type Credentials = Pick<Call, 'credential' | 'authorization'>;

/**
 * Calls every endpoint without a credential and with invalid ones, for ids that were never issued and with bodies that
 * create nothing. Anything created by mistake is destroyed. The order of the endpoints is drawn for each credential; that
 * of the credentials is not: a target may ban an address, and the same checks must then fail in each run.
 */
export const unauthenticated: Scenario = {
  id: 'unauthenticated',
  level: 'read-only',
  title: 'asks each endpoint without a credential, and with bad ones',
  after: ['catalog'],
  buys: [],
  async run(session) {
    const id = session.draws.uuid('unauthenticated/id');
    const endpoints = protectedEndpoints().filter(
      ({ isStorage }) => !isStorage || session.locations !== undefined,
    );
    for (const [credential, credentials] of Object.entries(badCredentials(session))) {
      const requests = endpoints.map(({ method, path }) => ({
        step: `unauthenticated/${credential}`,
        method,
        path: pathFor(session, path, id),
        credentials,
      }));
      for (const request of inDrawnOrder(session.draws, 'unauthenticated', requests))
        await ask(session, request);
    }
  },
};

/**
 * The invalid credentials by step. Parts of the key are registered as secrets, since the key could be derived from
 * them.
 */
function badCredentials({ client, draws }: Session): Record<string, Credentials> {
  const key = client.usualBearer;
  const cutKey = key.slice(0, -1);
  client.keepSecret('the key without its last character', cutKey);
  const otherCase = key.replace(/[a-z]/gi, (letter) =>
    letter === letter.toUpperCase() ? letter.toLowerCase() : letter.toUpperCase(),
  );
  client.keepSecret('the key in the other letter case', otherCase);
  const altered = (authorization: string): Credentials => ({ credential: 'altered', authorization });
  return {
    none: { credential: 'none' },
    'wrong-key': altered(`Bearer berth-conf-never-issued-${draws.uuid('unauthenticated/wrong-key')}`),
    'other-scheme/basic': altered(`Basic ${key}`),
    'other-scheme/token': altered(`Token ${key}`),
    'other-scheme/none': altered(key),
    'empty-bearer': altered('Bearer'),
    'cut-key': altered(`Bearer ${cutKey}`),
    'longer-key': altered(`Bearer ${key}0`),
    ...(otherCase !== key && { 'other-case-key': altered(`Bearer ${otherCase}`) }),
  };
}

interface BadRequest {
  step: string;
  method: Call['method'];
  path: string;
  credentials: Credentials;
}

async function ask(session: Session, { step, method, path, credentials }: BadRequest): Promise<void> {
  const nothing = { step, body: () => ({}), createsNothing: true, ...credentials } as const;
  if (method === 'POST' && path === '/instances')
    return void (await session.create({ ...nothing, type: 'instance' }));
  if (method === 'POST' && path === '/volumes')
    return void (await session.create({ ...nothing, type: 'volume' }));
  await session.send(step, { method, path, ...(method === 'POST' && { body: {} }), ...credentials });
}

/** The path of an endpoint for an id, with the region that clients add for an instance. */
function pathFor(session: Session, template: string, id: string): string {
  const [region] = knownRegions(session);
  const query =
    region === undefined || !template.startsWith('/instances/')
      ? ''
      : `?region=${encodeURIComponent(region)}`;
  return `${template.replace(/\{[^}]+\}/, id)}${query}`;
}

/** An endpoint of the contract. */
export interface Endpoint {
  method: Call['method'];
  /** As in the contract, e.g. `/instances/{instanceId}`. */
  path: string;
  /** Whether it belongs to the storage tier, which is optional. */
  isStorage: boolean;
}

const METHODS = ['GET', 'POST', 'DELETE', 'PUT', 'PATCH'] as const;

/** The path prefix of Berth's own extensions, which are in the document but not in the contract. */
const BEYOND = '/x/';

/** Every endpoint that requires a credential: all except the token endpoint. */
function protectedEndpoints(): Endpoint[] {
  const document = readPackageJson('openapi/orchestrator.v1.json');
  const paths = isObject(document) && isObject(document['paths']) ? document['paths'] : {};
  return Object.entries(paths)
    .filter(([path]) => path !== '/auth/token' && !path.startsWith(BEYOND))
    .flatMap(([path, operations]) =>
      METHODS.filter((method) => isObject(operations) && method.toLowerCase() in operations).map(
        (method) => ({
          method,
          path,
          isStorage: path.startsWith('/volumes'),
        }),
      ),
    );
}
