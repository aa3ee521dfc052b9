import { type ApiName, authUrl, SECRET, urlOf } from './settings.ts';

/** Each service's name in the catalog, and the path before its resources. */
const roots: Record<Exclude<ApiName, 'keystone'>, (project: string) => string> = {
  glance: () => '/v2',
  placement: () => '',
  neutron: () => '/v2.0',
  'nova-api': () => '/v2.1',
  'cinder-api': (project) => `/v3/${project}`,
};
/** New enough for all that the lab asks. */
const versions: Record<string, string> = {
  'OpenStack-API-Version': 'compute 2.93, volume 3.70, placement 1.39',
};

// biome-ignore lint/suspicious/noExplicitAny: what the services answer is looked at, not trusted
export type Answer = any;

/** A response whose status is not 2xx. */
export class ApiError extends Error {
  readonly status: number;

  constructor(request: string, status: number, text: string) {
    super(`${request} answered ${status}: ${text.slice(0, 500)}`);
    this.status = status;
  }
}

/** A user of a project, with plain requests. Logs in again when its token is refused. */
export class Api {
  readonly #auth: object;
  #token: string | undefined;
  project = '';

  constructor(auth: object) {
    this.#auth = auth;
  }

  /** `services` are by the lab's names. @throws {ApiError} */
  async send(service: ApiName, method: string, path: string, body?: unknown): Promise<Answer> {
    const first = await this.#once(service, method, path, body);
    const response = first.status === 401 ? await this.#again(service, method, path, body) : first;
    const text = await response.text();
    if (!response.ok) throw new ApiError(`${method} ${service} ${path}`, response.status, text);
    return text === '' || !/json/.test(response.headers.get('content-type') ?? '')
      ? undefined
      : JSON.parse(text);
  }

  async #again(...request: Parameters<Api['send']>): Promise<Response> {
    this.#token = undefined;
    return this.#once(...request);
  }

  async #once(service: ApiName, method: string, path: string, body: unknown): Promise<Response> {
    this.#token ??= await this.logIn();
    const root = service === 'keystone' ? authUrl : `${urlOf(service)}${roots[service](this.project)}`;
    const type = body instanceof Uint8Array ? 'application/octet-stream' : 'application/json';
    return fetch(`${root}${path}`, {
      method,
      headers: { 'x-auth-token': this.#token, 'content-type': type, ...versions },
      body:
        body === undefined || body instanceof Uint8Array
          ? ((body as Uint8Array<ArrayBuffer>) ?? null)
          : JSON.stringify(body),
    });
  }

  /** @throws {ApiError} */
  async logIn(): Promise<string> {
    const response = await fetch(`${authUrl}/auth/tokens`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ auth: this.#auth }),
    });
    const text = await response.text();
    if (!response.ok) throw new ApiError('the login', response.status, text);
    this.project = JSON.parse(text).token.project.id;
    return response.headers.get('x-subject-token') ?? '';
  }
}

const Default = { name: 'Default' };

/** A user by its name; it may do what its roles in the project allow. */
export const userOf = (name: string, project: string): Api =>
  new Api({
    identity: {
      methods: ['password'],
      password: { user: { name, password: SECRET, domain: Default } },
    },
    scope: { project: { name: project, domain: Default } },
  });
