import { Refusal, type Who } from './api.ts';

/** Names that a project or a user of the cloud has. */
export interface Credential {
  id: string;
  secret: string;
  who: Who;
}

interface Token {
  who: Who;
  credential: string;
  expiresAt: number;
}

interface Parts {
  now: () => number;
  /** How long a token lasts. */
  tokenMs: number;
  credentials: readonly Credential[];
  regions: readonly string[];
}

interface Methods {
  identity?: {
    methods?: string[];
    password?: { user?: { id?: string; name?: string; password?: string } };
    application_credential?: { id?: string; name?: string; secret?: string };
  };
  scope?: { project?: { id?: string; name?: string } };
}

const SERVICES = {
  identity: 'keystone',
  compute: 'nova',
  network: 'neutron',
  image: 'glance',
  volumev3: 'cinder',
  placement: 'placement',
} as const;
export type Service = (typeof SERVICES)[keyof typeof SERVICES];

export const KEYSTONE = 'https://keystone.regionone.example:5000/v3';
const UNAUTHORIZED = 'The request you have made requires authentication.';

const unauthorized = (): Refusal =>
  new Refusal(401, UNAUTHORIZED, 'Unauthorized', { 'www-authenticate': `Keystone uri="${KEYSTONE}"` });

/** Keystone: tokens that expire, credentials that are revoked, and the catalog of the regions. */
export class Identity {
  readonly #parts: Parts;
  readonly #tokens = new Map<string, Token>();
  readonly #revoked = new Set<string>();
  #issued = 0;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** `POST /auth/tokens`. The id of a user is also its name, and that of a project. @throws {Refusal} 401 */
  issue({ identity = {}, scope }: Methods): { token: string; body: object } {
    const { password, application_credential: application } = identity;
    const user = password?.user;
    const [id, secret] = [
      application?.id ?? application?.name ?? user?.id ?? user?.name,
      application?.secret ?? user?.password,
    ];
    const credential = this.#parts.credentials.find((one) => one.id === id && one.secret === secret);
    const wanted = scope?.project?.id ?? scope?.project?.name;
    if (credential === undefined || this.#revoked.has(credential.id)) throw unauthorized();
    if (wanted !== undefined && wanted !== credential.who.project) throw unauthorized();
    const token = `gAAAAA-${++this.#issued}`;
    const expiresAt = this.#parts.now() + this.#parts.tokenMs;
    this.#tokens.set(token, { who: credential.who, credential: credential.id, expiresAt });
    return { token, body: this.#describe(credential.who, expiresAt, identity.methods ?? []) };
  }

  /** @throws {Refusal} 401 for a token that is unknown, expired or revoked */
  whoHas(token: string | undefined): Who {
    return this.#valid(token).who;
  }

  describe(token: string | undefined): object {
    const { who, expiresAt } = this.#valid(token);
    return this.#describe(who, expiresAt, ['token']);
  }

  revoke(token: string): void {
    this.#tokens.delete(token);
  }

  /** Somebody deletes the credential, or changes the password: its tokens end with it. */
  revokeCredential(id: string): void {
    this.#revoked.add(id);
  }

  restoreCredential(id: string): void {
    this.#revoked.delete(id);
  }

  /** The catalog has URLs by interface and region. */
  catalog({ project }: Who): object[] {
    return Object.entries(SERVICES).map(([type, name]) => ({
      ...{ id: name, type, name: name === 'cinder' ? 'cinderv3' : name },
      endpoints: this.#parts.regions.flatMap((region) =>
        (['public', 'internal', 'admin'] as const).map((kind) => ({
          ...{ id: `${name}-${region}-${kind}`, interface: kind, region, region_id: region },
          url: urlOf(name, region, kind, project),
        })),
      ),
    }));
  }

  #valid(token: string | undefined): Token {
    const found = this.#tokens.get(token ?? '');
    const isValid =
      found !== undefined && found.expiresAt > this.#parts.now() && !this.#revoked.has(found.credential);
    if (!isValid) throw unauthorized();
    return found;
  }

  #describe(who: Who, expiresAt: number, methods: string[]): object {
    const domain = { id: 'default', name: 'Default' };
    const toMicros = (at: number): string => new Date(at).toISOString().replace('Z', '000Z');
    return {
      token: {
        ...{ methods, is_domain: false, audit_ids: [`audit-${this.#issued}`] },
        ...{ expires_at: toMicros(expiresAt), issued_at: toMicros(this.#parts.now()) },
        user: { id: who.user, name: who.user, domain, password_expires_at: null },
        project: { id: who.project, name: who.project, domain },
        roles: ['reader', 'member', ...(who.isAdmin ? ['admin'] : [])].map((name) => ({ id: name, name })),
        catalog: this.catalog(who),
      },
    };
  }
}

const PORTS: Record<Service, string> = {
  keystone: ':5000/v3',
  nova: ':8774/v2.1',
  neutron: ':9696',
  glance: ':9292',
  cinder: ':8776/v3/PROJECT',
  placement: ':8778',
};

function urlOf(
  service: Service,
  region: string,
  kind: 'public' | 'internal' | 'admin',
  project: string,
): string {
  const host = `${service}${kind === 'public' ? '' : `-${kind}`}.${region.toLowerCase()}.example`;
  return `https://${host}${PORTS[service].replace('PROJECT', project)}`;
}
