import type { Answer, Sent } from '../../../src/drivers/kit/http-transport.ts';
import type { Doer } from '../engine.ts';
import { Refusal } from '../surroundings.ts';
import { answer, type Fields } from './api.ts';
import type { Cloud } from './cloud.ts';
import type { Credential, Identity, Service } from './identity.ts';
import type { Servers } from './servers.ts';
import { routesOf } from './services.ts';

/** How often a service is overloaded, fails, or its proxy gives up. */
const TROUBLE = 0.01;

type Auth = { identity: { application_credential: Credential } };
export type RestApi = (sent: Omit<Sent, 'signal'>, by: Doer) => Promise<Answer>;

/** Every service of the cloud behind its URL. */
export function restApi(identity: Identity, servers: Servers): RestApi {
  const { cloud } = servers;
  const routes = routesOf(servers);
  const carryOut = (
    service: Service,
    { method, url, headers, body }: Omit<Sent, 'signal'>,
    by: Doer,
  ): Answer => {
    const { pathname, searchParams: query } = new URL(url);
    const told = JSON.parse(body || '{}') as Fields;
    if (service === 'keystone') return authenticate(identity, told);
    const who = identity.whoHas(headers['x-auth-token']);
    // Cinder's has the project.
    const path = pathname.replace(/^\/(v3\/[^/]*|v[\d.]+)?\/?/, '');
    if (service === 'nova' && cloud.isCellDown && method !== 'GET' && path.startsWith('servers/'))
      throw new Refusal(500, 'Cell is not responding and hence instance info is not available.');
    const found = answer(routes[service], method, path, { query, body: told, who, by });
    if (method !== 'GET') cloud.observe(by);
    return { status: found === undefined ? 204 : 200, headers: {}, text: found ? JSON.stringify(found) : '' };
  };
  return async (sent, by) => {
    const service = new URL(sent.url).hostname.split('.')[0] as Service;
    try {
      mayRefuse(cloud);
      const reply = carryOut(service, sent, by);
      // Carried out, and the answer is the proxy's.
      if (cloud.fails(TROUBLE))
        throw new Refusal(cloud.chance.pick([500, 502, 504]), 'Unexpected API Error.');
      return reply;
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      return { status: error.status, headers: error.headers, text: wordsOf(service, error) };
    }
  };
}

function authenticate(identity: Identity, { auth }: Fields): Answer {
  const { token, body } = identity.issue((auth as Auth).identity.application_credential);
  return { status: 201, headers: { 'x-subject-token': token }, text: JSON.stringify(body) };
}

function mayRefuse(cloud: Cloud): void {
  const { chance } = cloud;
  if (!cloud.fails(TROUBLE)) return;
  const retry = { 'retry-after': String(chance.whole(1, 20)) };
  if (chance.happens(0.3)) throw new Refusal(429, 'This request was rate-limited.', retry);
  throw new Refusal(503, 'The server is currently unavailable.', chance.happens(0.5) ? retry : {});
}

/** Each service words a refusal in its own way. */
function wordsOf(service: Service, { status, message }: Refusal): string {
  if (status === 502 || status === 504 || (service === 'glance' && status !== 401))
    return `<html><body><h1>${message}</h1></body></html>`;
  if (service === 'placement') return JSON.stringify({ errors: [{ status, detail: message }] });
  const kind = service === 'neutron' ? 'NeutronError' : 'fault';
  return JSON.stringify({ [kind]: { code: status, message } });
}
