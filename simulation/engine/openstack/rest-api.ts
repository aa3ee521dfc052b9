import type { Answer, Sent } from '../../../src/drivers/openstack/transport.ts';
import type { Doer } from '../engine.ts';
import { type Asked, ok, Refusal, type Reply, router, toVersion, type Who } from './api.ts';
import type { Cloud } from './cloud.ts';
import { ComputeApi } from './compute-api.ts';
import { type Identity, KEYSTONE, type Service } from './identity.ts';
import { NetworkApi } from './network-api.ts';
import { PlacementApi } from './placement-api.ts';
import { Servers } from './servers.ts';
import { ImageApi, VolumeApi } from './storage-api.ts';
import { Volumes } from './volumes.ts';

/** What Zed has: the service's word in `OpenStack-API-Version`, and its range. */
const VERSIONS: Partial<Record<Service, { word: string; min: string; max: string }>> = {
  nova: { word: 'compute', min: '2.1', max: '2.93' },
  cinder: { word: 'volume', min: '3.0', max: '3.70' },
  placement: { word: 'placement', min: '1.0', max: '1.39' },
};
/** How often a service is overloaded, fails, or its proxy gives up. */
const TROUBLE = 0.01;
const FAULTS: Record<number, string> = {
  400: 'badRequest',
  401: 'unauthorized',
  403: 'forbidden',
  404: 'itemNotFound',
  405: 'badMethod',
  409: 'conflictingRequest',
  413: 'overLimit',
  429: 'overLimit',
  503: 'serviceUnavailable',
};

interface Region {
  cloud: Cloud;
  compute: ComputeApi;
  servers: Servers;
  handlers: Record<Exclude<Service, 'keystone'>, (asked: Asked) => Promise<Reply>>;
}

/** Every service of the cloud's regions behind its URL. */
export class RestApi {
  readonly #identity: Identity;
  readonly #regions: ReadonlyMap<string, Region>;

  constructor(identity: Identity, clouds: readonly Cloud[]) {
    this.#identity = identity;
    this.#regions = new Map(clouds.map((cloud) => [cloud.region.toLowerCase(), regionOf(cloud)]));
  }

  /** What people work with in a region. */
  regionOf(cloud: Cloud): Pick<Region, 'compute' | 'servers'> {
    const region = this.#regions.get(cloud.region.toLowerCase());
    if (region === undefined) throw new Error(`there is no region ${cloud.region}`);
    return region;
  }

  async answer(sent: Omit<Sent, 'signal'>, by: Doer): Promise<Answer> {
    const url = new URL(sent.url);
    const [, service = '', name = ''] =
      /^([a-z]+)(?:-internal|-admin)?\.([a-z0-9]+)\.example$/.exec(url.hostname) ?? [];
    const region = this.#regions.get(name);
    if (region === undefined || !(service === 'keystone' || service in region.handlers))
      throw Object.assign(new Error(`getaddrinfo ENOTFOUND ${url.hostname}`), { code: 'ENOTFOUND' });
    try {
      const reply = await this.#reply(service as Service, region, sent, url, by);
      return toAnswer(reply.status, reply.body, reply.headers);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      return toAnswer(error.status, errorOf(service as Service, error), error.headers);
    }
  }

  async #reply(
    service: Service,
    region: Region,
    sent: Omit<Sent, 'signal'>,
    url: URL,
    by: Doer,
  ): Promise<Reply> {
    const { cloud } = region;
    const headers = Object.fromEntries(
      Object.entries(sent.headers).map(([key, value]) => [key.toLowerCase(), value]),
    );
    const body = sent.body === undefined || sent.body === '' ? {} : JSON.parse(sent.body);
    if (cloud.fails(TROUBLE)) {
      const retry = { 'retry-after': String(cloud.chance.whole(1, 20)) };
      if (cloud.chance.happens(0.3))
        throw new Refusal(429, 'This request was rate-limited.', 'TooManyRequests', retry);
      throw new Refusal(
        503,
        'The server is currently unavailable.',
        'ServiceUnavailable',
        cloud.chance.happens(0.5) ? retry : {},
      );
    }
    const path = url.pathname.replace(/^\/+|\/+$/g, '');
    const reply =
      service === 'keystone'
        ? this.#keystone(sent.method, path, headers, body)
        : await this.#ofService(service, region, { method: sent.method, path, headers, body, url, by });
    // Carried out, and the answer is the proxy's.
    if (cloud.fails(TROUBLE))
      throw new Refusal(
        cloud.chance.pick([500, 502, 504]),
        'Unexpected API Error.',
        'HTTPInternalServerError',
      );
    return reply;
  }

  #keystone(
    method: string,
    path: string,
    headers: Record<string, string>,
    body: Record<string, unknown>,
  ): Reply {
    const version = { id: 'v3.14', status: 'stable', links: [{ rel: 'self', href: `${KEYSTONE}/` }] };
    if (path === '') return { status: 300, body: { versions: { values: [version] } } };
    if (path === 'v3') return ok({ version });
    if (path === 'v3/auth/tokens' && method === 'POST') {
      const { token, body: answer } = this.#identity.issue(body['auth'] as object);
      return { status: 201, body: answer, headers: { 'x-subject-token': token } };
    }
    const who = this.#identity.whoHas(headers['x-auth-token']);
    const subject = headers['x-subject-token'] ?? '';
    if (path === 'v3/auth/tokens' && method === 'GET') return ok(this.#identity.describe(subject));
    if (path === 'v3/auth/tokens' && method === 'DELETE') {
      this.#identity.revoke(subject);
      return { status: 204 };
    }
    if (path === 'v3/auth/catalog') return ok({ catalog: this.#identity.catalog(who) });
    if (path === 'v3/auth/projects')
      return ok({ projects: [{ id: who.project, name: who.project, enabled: true }] });
    throw new Refusal(404, `Could not find: ${path}.`, 'Not Found');
  }

  async #ofService(
    service: Exclude<Service, 'keystone'>,
    region: Region,
    sent: {
      method: string;
      path: string;
      headers: Record<string, string>;
      body: Record<string, unknown>;
      url: URL;
      by: Doer;
    },
  ): Promise<Reply> {
    const { method, headers, body, url, by } = sent;
    const documents = versionsOf(service, sent.path, url);
    if (documents !== undefined) return documents;
    const who = this.#identity.whoHas(headers['x-auth-token']);
    const [root, path] = within(service, sent.path, who);
    const version = microversion(service, headers);
    const asked: Asked = {
      ...{ method, path, body, who, version, by },
      query: url.searchParams,
      base: `${url.origin}/${root}`,
    };
    return region.handlers[service](asked);
  }
}

function regionOf(cloud: Cloud): Region {
  const volumes = new Volumes(cloud);
  const servers = new Servers(cloud, volumes);
  const compute = new ComputeApi(servers);
  return {
    ...{ cloud, compute, servers },
    handlers: {
      nova: router(compute.routes),
      neutron: router(new NetworkApi(cloud).routes),
      glance: router(new ImageApi(cloud).routes),
      cinder: router(new VolumeApi(cloud, volumes).routes),
      placement: router(new PlacementApi(cloud).routes),
    },
  };
}

/** Anyone may read which versions there are. */
function versionsOf(service: Service, path: string, { origin }: URL): Reply | undefined {
  const { min = '', max = '' } = VERSIONS[service] ?? {};
  const links = (href: string): object => ({ links: [{ rel: 'self', href: `${origin}/${href}` }] });
  const document = { id: 'v2.1', status: 'CURRENT', version: max, min_version: min, ...links('v2.1/') };
  if (service === 'nova' && path === '') return ok({ versions: [document] });
  if (service === 'nova' && path === 'v2.1') return ok({ version: document });
  const cinder = { versions: [{ ...document, id: 'v3.0', ...links('v3/') }] };
  if (service === 'cinder' && (path === '' || path === 'v3'))
    return { status: path === '' ? 300 : 200, body: cinder };
  if (service === 'placement' && path === '')
    return ok({
      versions: [
        {
          id: 'v1.0',
          min_version: min,
          max_version: max,
          status: 'CURRENT',
          links: [{ rel: 'self', href: '' }],
        },
      ],
    });
  if (service === 'neutron' && path === '')
    return ok({ versions: [{ id: 'v2.0', status: 'CURRENT', ...links('v2.0/') }] });
  if (service === 'glance' && path === '')
    return { status: 300, body: { versions: [{ id: 'v2.15', status: 'CURRENT', ...links('v2/') }] } };
  return undefined;
}

/** The service's version, with the project where it has one, and what follows. */
function within(service: Service, path: string, { project }: Who): [root: string, rest: string] {
  const roots: Partial<Record<Service, string>> = {
    nova: 'v2.1',
    neutron: 'v2.0',
    glance: 'v2',
    cinder: `v3/${project}`,
  };
  const root = roots[service] ?? '';
  if (root !== '' && !`${path}/`.startsWith(`${root}/`)) {
    // A path of another project.
    if (service === 'cinder') throw new Refusal(400, 'Malformed request url');
    throw new Refusal(404, 'The resource could not be found.', 'HTTPNotFound');
  }
  return [
    root,
    path
      .slice(root.length)
      .replace(/^\//, '')
      .replace(/\.json$/, ''),
  ];
}

function microversion(service: Service, headers: Record<string, string>): number {
  const range = VERSIONS[service];
  if (range === undefined) return 0;
  const [word, wanted] = (headers['openstack-api-version'] ?? '').split(' ');
  if (word !== range.word || wanted === undefined) return toVersion(range.min);
  if (wanted === 'latest') return toVersion(range.max);
  if (toVersion(wanted) < toVersion(range.min) || toVersion(wanted) > toVersion(range.max))
    throw new Refusal(
      406,
      `Version ${wanted} is not supported by the API. Minimum is ${range.min} and maximum is ${range.max}.`,
    );
  return toVersion(wanted);
}

/** Each service words its errors in its own way; whoever asks without a token is told by the middleware of all. */
function errorOf(service: Service, { status, message, type }: Refusal): object | string {
  if (status === 401 || service === 'keystone') return { error: { code: status, message, title: type } };
  if (service === 'neutron') return { NeutronError: { type, message, detail: '' } };
  if (status === 502 || status === 504) return PROXY;
  if (service === 'placement')
    return {
      errors: [
        { status, title: type, detail: message, request_id: 'req-1', code: 'placement.undefined_code' },
      ],
    };
  if (service === 'glance')
    return `<html><head><title>${status}</title></head><body>${message}</body></html>`;
  return { [FAULTS[status] ?? 'computeFault']: { code: status, message } };
}

/** What a proxy says, in its own words. */
const PROXY = '<html><body><h1>The server did not answer</h1></body></html>';

function toAnswer(
  status: number,
  body: object | string | undefined,
  headers: Record<string, string> = {},
): Answer {
  const text = typeof body === 'string' ? body : body === undefined ? '' : JSON.stringify(body);
  const type = typeof body === 'string' ? 'text/html' : 'application/json';
  return { status, headers: { 'content-type': type, 'x-openstack-request-id': 'req-1', ...headers }, text };
}
