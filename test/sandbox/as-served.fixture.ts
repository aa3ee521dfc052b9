import { routes } from '../support/http/routes.ts';

/** One request of the comparison. Ids and credentials are filled in by each side. */
export interface Question {
  name: string;
  method: string;
  /** Below `/v1`. `INSTANCE` and `VOLUME` stand for the ids. */
  path: string;
  headers?: Record<string, string>;
  /** Default: the key of the account. */
  authorization?: 'none' | 'twice' | string;
  body?: string;
}

export const REGION = 'us-phoenix';
const OFFER = 'd-cpu-4x16';
const SSH_KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKgDhRcu34nWdqYNlV6hOFXMKVUsS+lmpHBhZ9Wj8gXY test';
const VOLUME_TYPE = 'nvme-network';
export const JSON_TYPE = { 'content-type': 'application/json' };

export const order = { configuration_id: OFFER, region: REGION, ssh_keys: [SSH_KEY], name: 'compared' };
export const volumeOrder = { name: 'data', region: REGION, size_gb: 10, volume_type: VOLUME_TYPE };

const bodies: Record<string, Record<string, unknown>> = {
  'POST /auth/token': { api_key: 'berth_no-such-key' },
  'POST /instances': order,
  'POST /volumes': volumeOrder,
  'POST /volumes/{volumeId}/attach': { instance_ids: ['INSTANCE'] },
  'POST /volumes/{volumeId}/detach': { instance_ids: ['INSTANCE'] },
  'POST /x/volumes/{volumeId}/resize': { size_gb: 20 },
  'POST /x/instances/{instanceId}/restart': {},
};

/** Values of a wrong kind, for each field. */
const WRONG = [null, 0, -1, 1.5, 1e308, true, '', 'x'.repeat(3_000), '\u0000', '__proto__', [], [null], {}];

/** Bodies that are not a JSON object. */
const BROKEN = ['', '{', '[]', 'null', '"text"', '{"a":1,}', '{"a":1}{"b":2}', '\ufeff{}', '[['.repeat(500)];

const AUTHORIZATIONS: Record<string, string> = {
  none: 'none',
  empty: '',
  'of another scheme': 'Basic dXNlcjpwYXNz',
  'without a scheme': 'KEY',
  'in lower case': 'bearer KEY',
  'with two spaces': 'Bearer  KEY',
  'with a word more': 'Bearer KEY more',
  unknown: 'Bearer berth_no-such-key',
  twice: 'twice',
};

const filled = (path: string): string =>
  path.replace('{instanceId}', 'INSTANCE').replace('{volumeId}', 'VOLUME');
/** A path that changes or waits for nothing, whatever is sent to it. */
const missing = (path: string): string =>
  path.replace('{instanceId}', 'inst-missing').replace('{volumeId}', 'vol-missing');

const QUERIES = ['', `?region=${REGION}`, '?region=nowhere', '?region=', '?region=a&region=b', '?x=%zz'];
const METHODS = ['PUT', 'PATCH', 'OPTIONS', 'DELETE', 'POST', 'GET'];
const PATHS = [
  '',
  '/',
  '//instances',
  '/Instances',
  '/instances/%zz',
  '/instances/%2e%2e',
  '/none',
  '/x/none',
];

function reads(): Question[] {
  return routes
    .filter(({ method }) => method === 'GET')
    .flatMap(({ path }): Question[] => {
      const to = { method: 'GET', path: filled(path) };
      return [
        ...QUERIES.map((query) => ({ ...to, name: `read ${query}`, path: `${to.path}${query}` })),
        { ...to, name: 'read of what is not there', path: missing(path) },
        { ...to, name: 'HEAD', method: 'HEAD' },
        { ...to, name: 'slash at the end', path: `${to.path}/` },
        { ...to, name: 'other accept', headers: { accept: 'text/html' } },
        { ...to, name: 'etag of another', headers: { 'if-none-match': '"x"' } },
        { ...to, name: 'any etag', headers: { 'if-none-match': '*' } },
      ];
    });
}

function wrongCredentials(): Question[] {
  return routes.flatMap(({ method, path }) =>
    Object.entries(AUTHORIZATIONS).map(([name, authorization]) => ({
      ...{ name: `key ${name}`, method, path: missing(path), authorization },
    })),
  );
}

function wrongMethods(): Question[] {
  return [...new Set(routes.map(({ path }) => path))].flatMap((path) =>
    METHODS.filter((method) => !routes.some((route) => route.path === path && route.method === method)).map(
      (method) => ({ name: 'method that it does not have', method, path: missing(path) }),
    ),
  );
}

function wrongBodies(): Question[] {
  return routes
    .filter(({ hasBody }) => hasBody)
    .flatMap(({ method, path }) => {
      const good = bodies[`${method} ${path}`] ?? {};
      const to = { method, path: missing(path), headers: JSON_TYPE };
      const body = JSON.stringify(good);
      return [
        ...BROKEN.map((broken) => ({ ...to, name: `body ${broken.slice(0, 10)}`, body: broken })),
        { ...to, name: 'unknown field', body: JSON.stringify({ ...good, unknown_field: 1 }) },
        { ...to, name: 'text', headers: { 'content-type': 'text/plain' }, body },
        { ...to, name: 'no type', headers: {}, body },
        { ...to, name: 'large', body: JSON.stringify({ ...good, name: 'x'.repeat(2_000_000) }) },
        ...Object.keys(good).flatMap((field) =>
          wrongFields(good, field).map((wrong) => ({
            ...to,
            name: wrong.name,
            body: JSON.stringify(wrong.body),
          })),
        ),
      ];
    });
}

function wrongFields(good: Record<string, unknown>, field: string): { name: string; body: object }[] {
  // A name may be any text, or absent.
  if (field === 'name') return [];
  const { [field]: _left, ...others } = good;
  const wrong = WRONG.map((value) => ({
    name: `${field} = ${String(JSON.stringify(value)).slice(0, 20)}`,
    body: { ...good, [field]: value },
  }));
  return [{ name: `without ${field}`, body: others }, ...wrong];
}

/** Requests that change nothing, broken ones too. */
export function harmlessQuestions(): Question[] {
  const paths = PATHS.flatMap((path) =>
    ['GET', 'POST', 'DELETE'].map((method) => ({ name: 'path', method, path })),
  );
  return [...reads(), ...wrongCredentials(), ...wrongMethods(), ...wrongBodies(), ...paths];
}
