import type { Answer, Sent, Transport } from '../../../src/drivers/kit/http-transport.ts';
import { Scheduler } from '../../../test/support/time/scheduler.ts';
import { Chance } from '../../kernel/chance.ts';
import { Cloud, type CloudParts } from './cloud.ts';
import { type Credential, cloudsEntry, Identity, TOKEN_MS, URLS } from './identity.ts';
import { restApi } from './rest-api.ts';
import { Servers } from './servers.ts';

export { TOKEN_MS, URLS };

const secret = 'a secret of the cloud in memory';
/** An administrator in the project of Berth. */
export const ADMIN: Credential = { id: 'berth', secret, who: { project: 'berth', isAdmin: true } };
/** A member of the same project. */
export const MEMBER: Credential = { id: 'member', secret, who: { project: 'berth', isAdmin: false } };
/** A member of another project. */
export const OTHER: Credential = { id: 'other', secret, who: { project: 'other', isAdmin: false } };

export interface MemoryCloud {
  time: Scheduler;
  cloud: Cloud;
  identity: Identity;
  transport: Transport;
  /** Moves time on. */
  wait(ms: number): Promise<void>;
}

/** A cloud on a clock that stands still until a test moves it. Nothing fails by itself. */
export function memoryCloud(parts: Partial<CloudParts> = {}): MemoryCloud {
  const time = new Scheduler();
  const cloud = new Cloud({
    scheduler: time,
    chance: new Chance('openstack'),
    isCalm: () => true,
    observe: () => undefined,
    ...parts,
  });
  const identity = new Identity(() => time.now, [ADMIN, MEMBER, OTHER]);
  const api = restApi(identity, new Servers(cloud));
  const transport = { send: (sent: Sent) => api(sent, 'a person'), close: async () => undefined };
  return { time, cloud, identity, transport, wait: (ms) => time.runUntil(time.now + ms) };
}

export type Told = Answer & { body: unknown };

/** A client of a cloud in memory with a token of a credential. */
export async function clientOf({ transport }: Pick<MemoryCloud, 'transport'>, credential = ADMIN) {
  const send = (method: string, url: string, body?: object, token = ''): Promise<Answer> =>
    transport.send({
      method: method as Sent['method'],
      url,
      headers: { 'x-auth-token': token },
      body: body && JSON.stringify(body),
      signal: new AbortController().signal,
    });
  const { auth } = cloudsEntry(credential);
  const { headers } = await send('POST', `${URLS.keystone}/auth/tokens`, { auth });
  const ask = async (method: string, url: string, body?: object): Promise<Told> => {
    const answer = await send(method, url, body, headers['x-subject-token']);
    return { ...answer, body: answer.text.startsWith('{') ? JSON.parse(answer.text) : {} };
  };
  return { ask };
}
