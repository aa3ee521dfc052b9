import type { Cloud } from '../../../src/drivers/openstack/clouds.ts';
import { Refusal } from '../surroundings.ts';
import type { Fields, Who } from './api.ts';

export interface Credential {
  id: string;
  secret: string;
  who: Who;
}

/** The addresses of the services. Those of Neutron and Glance in the catalog have no version. */
export const URLS = {
  keystone: 'https://keystone.example:5000/v3',
  nova: 'https://nova.example:8774/v2.1',
  neutron: 'https://neutron.example:9696/v2.0',
  glance: 'https://glance.example:9292/v2',
  cinder: 'https://cinder.example:8776/v3/berth',
  placement: 'https://placement.example:8778',
};
export type Service = keyof typeof URLS;

const TYPES = {
  compute: URLS.nova,
  network: URLS.neutron.replace('/v2.0', ''),
  image: URLS.glance.replace('/v2', ''),
  volumev3: URLS.cinder,
  placement: URLS.placement,
};
const REGION = 'RegionOne';
export const TOKEN_MS = 1_800_000;

/** Keystone: tokens that expire, credentials that are revoked, and the catalog of one region. */
export class Identity {
  readonly #now: () => number;
  readonly #credentials: readonly Credential[];
  readonly #tokens = new Map<string, Credential & { expiresAt: number }>();
  readonly #revoked = new Set<string>();
  #issued = 0;

  constructor(now: () => number, credentials: readonly Credential[]) {
    this.#now = now;
    this.#credentials = credentials;
  }

  /** `POST /auth/tokens` with an application credential. @throws {Refusal} 401 */
  issue({ id, secret }: Pick<Credential, 'id' | 'secret'>): { token: string; body: Fields } {
    const credential = this.#credentials.find((one) => one.id === id && one.secret === secret);
    if (credential === undefined || this.#revoked.has(id)) throw unauthorized();
    const token = `gAAAAA-${++this.#issued}`;
    const expiresAt = this.#now() + TOKEN_MS;
    this.#tokens.set(token, { ...credential, expiresAt });
    const expires_at = new Date(expiresAt).toISOString();
    const catalog = Object.entries(TYPES).map(([type, url]) => ({
      type,
      endpoints: [{ interface: 'public', region_id: REGION, url }],
    }));
    const { project } = credential.who;
    return { token, body: { token: { expires_at, project: { id: project, name: project }, catalog } } };
  }

  /** @throws {Refusal} 401 for a token that is unknown, expired or revoked */
  whoHas(token: string | undefined): Who {
    const found = this.#tokens.get(token ?? '');
    const isValid = found !== undefined && found.expiresAt > this.#now() && !this.#revoked.has(found.id);
    if (!isValid) throw unauthorized();
    return found.who;
  }

  revoke(token: string): void {
    this.#tokens.delete(token);
  }

  /** A credential that is revoked ends its tokens. */
  setRevoked(id: string, isRevoked: boolean): void {
    if (isRevoked) this.#revoked.add(id);
    else this.#revoked.delete(id);
  }
}

/** The entry of clouds.yaml for a credential. */
export function cloudsEntry({ id, secret }: Pick<Credential, 'id' | 'secret'>): Cloud {
  const credential = { methods: ['application_credential'], application_credential: { id, secret } };
  return {
    authUrl: URLS.keystone,
    auth: { identity: credential },
    project: undefined,
    region: undefined,
    interface: 'public',
    ca: undefined,
    verify: true,
    file: 'clouds.yaml',
    isReadableByOthers: false,
  };
}

const unauthorized = (): Refusal => new Refusal(401, 'The request you have made requires authentication.');
