import type { Answer, Sent, Transport } from '../../../src/drivers/openstack/transport.ts';
import { Scheduler } from '../../../test/support/time/scheduler.ts';
import { Chance } from '../../kernel/chance.ts';
import { Cloud, type CloudParts } from './cloud.ts';
import { type Credential, Identity, KEYSTONE } from './identity.ts';
import { RestApi } from './rest-api.ts';

const secret = 'a secret of the cloud in memory';
/** An administrator in the project of Berth. */
export const ADMIN: Credential = {
  id: 'berth',
  secret,
  who: { project: 'berth', user: 'berth', isAdmin: true },
};
/** A member of the same project. */
export const MEMBER: Credential = {
  id: 'member',
  secret,
  who: { ...ADMIN.who, user: 'member', isAdmin: false },
};
/** A member of another project. */
export const OTHER: Credential = {
  id: 'other',
  secret,
  who: { project: 'other', user: 'other', isAdmin: false },
};

export const TOKEN_MS = 3_600_000;
export const URLS = {
  keystone: KEYSTONE,
  nova: 'https://nova.regionone.example:8774/v2.1',
  neutron: 'https://neutron.regionone.example:9696/v2.0',
  glance: 'https://glance.regionone.example:9292/v2',
  cinder: 'https://cinder.regionone.example:8776/v3/berth',
  placement: 'https://placement.regionone.example:8778',
};

export interface MemoryCloud {
  time: Scheduler;
  cloud: Cloud;
  identity: Identity;
  api: RestApi;
  transport: Transport;
  /** Moves time on. */
  wait(ms: number): Promise<void>;
}

/** A cloud on a clock that stands still until a test moves it. Nothing fails by itself. */
export function memoryCloud(parts: Partial<CloudParts> = {}): MemoryCloud {
  const time = new Scheduler();
  const chance = new Chance('openstack');
  const cloud = new Cloud({
    scheduler: time,
    chance,
    isCalm: () => true,
    observe: () => undefined,
    ...parts,
  });
  const credentials = [ADMIN, MEMBER, OTHER];
  const identity = new Identity({
    now: () => time.now,
    tokenMs: TOKEN_MS,
    credentials,
    regions: [cloud.region],
  });
  const api = new RestApi(identity, [cloud]);
  const transport = { send: (sent: Sent) => api.answer(sent, 'a person'), close: async () => undefined };
  return { time, cloud, identity, api, transport, wait: (ms) => time.runUntil(time.now + ms) };
}

type Asked = { headers?: Record<string, string>; token?: string };
export type Told = Answer & { body: unknown };

/** Somebody who asks a cloud in memory with a token of a credential. */
export async function clientOf({ api }: Pick<MemoryCloud, 'api'>, { id, secret }: Credential = ADMIN) {
  const send = async (
    method: string,
    url: string,
    body?: object,
    headers: Record<string, string> = {},
  ): Promise<Told> => {
    const sent = { method: method as Sent['method'], url, headers, body: body && JSON.stringify(body) };
    const answer = await api.answer(sent, 'a person');
    return { ...answer, body: answer.text.startsWith('{') ? JSON.parse(answer.text) : {} };
  };
  const application = { methods: ['application_credential'], application_credential: { id, secret } };
  const auth = await send('POST', `${KEYSTONE}/auth/tokens`, { auth: { identity: application } });
  const own = auth.headers['x-subject-token'] ?? '';
  const ask = (
    method: string,
    url: string,
    body?: object,
    { headers = {}, token = own }: Asked = {},
  ): Promise<Told> =>
    send(method, url, body, { 'X-Auth-Token': token, 'OpenStack-API-Version': 'compute 2.79', ...headers });
  return { auth, token: own, send, ask };
}
