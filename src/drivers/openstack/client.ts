import type { DestroyOrder } from '../../orchestrator/model/destroy-order.ts';
import type { Call } from '../../orchestrator/model/platform-driver.ts';
import { NotReached } from '../../ports/errors.ts';
import { DEFAULT_CALL_MS } from '../../work/lease-time.ts';
import type { Asking } from '../kit/asking.ts';
import {
  type Answer,
  hasCode,
  httpTransport,
  NO_CONNECTION,
  type Sent,
  type Transport,
} from '../kit/http-transport.ts';
import type { Cloud } from './clouds.ts';
import { CloudRefusal } from './errors.ts';
import { type Service, type Session, services, toSession } from './session.ts';

export interface Connection {
  cloud: Cloud;
  /** Present under `berth doctor`. */
  asking?: Asking | undefined;
  /** Milliseconds since the epoch, on the clock of {@link Call.deadline}. The default is this machine's clock. */
  now?: () => number;
  /** The default is HTTP. */
  transport?: Transport;
}

type Change = 'POST' | 'PUT' | 'PATCH';
type Method = Change | 'GET' | 'DELETE';
export type Query = Readonly<Record<string, string>>;

export interface SendOptions {
  body?: unknown;
  query?: Query;
  /** Limits of the change. After its deadline or abort nothing is sent, and no answer is awaited. */
  call?: Call | undefined;
}

/** The reason for a removal. `keepsData`: what it removes is a mark or an attachment. */
export type Removal = { order: DestroyOrder } | typeof KEEPS_DATA;
export const KEEPS_DATA = { keepsData: true } as const;

/** An object of an answer. */
export type Json = Record<string, unknown>;

const REQUEST_TIMEOUT_MS = DEFAULT_CALL_MS - 1_000;
const CONNECT_TIMEOUT_MS = 3_000;
/** A token is replaced this long before it expires. */
const TOKEN_SPARE_MS = 60_000;
const MOST_PAGES = 1_000;
/** The longest time without a request to a service that asked for a pause. */
const LONGEST_REST_MS = 60_000;
/** Errors of a connection that was never made, so nothing was sent. */
const UNSENT = new Set<string>([...NO_CONNECTION, 'CERT_HAS_EXPIRED', 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY']);

/** Requests to the services of one project in one region, with a token that is renewed. */
export class CloudClient {
  readonly #cloud: Cloud;
  readonly #asking: Asking | undefined;
  readonly #now: () => number;
  readonly #transport: Transport;
  #session: Promise<Session> | undefined;
  /** Until when a service asked not to be asked, in milliseconds since the epoch. */
  readonly #rests = new Map<Service, number>();

  constructor({ cloud, asking, now = Date.now, transport }: Connection) {
    this.#cloud = cloud;
    this.#asking = asking;
    this.#now = now;
    const { ca, verify: rejectUnauthorized } = cloud;
    const connect = { timeout: CONNECT_TIMEOUT_MS, rejectUnauthorized, ca };
    this.#transport = transport ?? httpTransport(connect, REQUEST_TIMEOUT_MS);
  }

  /** The project and the region. @throws as `get` */
  async session(): Promise<Session> {
    return this.#within(undefined, (signal) => this.#current(signal));
  }

  /** @throws {CloudRefusal} | {NotReached} | {Error} if the answer is lost or is not the service's */
  async get(service: Service, path: string, query: Query = {}): Promise<Json> {
    return this.#request('GET', service, path, { query });
  }

  /**
   * Reads all pages of a list. The items are not validated. The service chooses the length of a page: with a limit, Nova omits
   * servers of cells that are down.
   *
   * @throws as `get`
   */
  async list<T>(service: Service, path: string, key: string, query: Query = {}): Promise<T[]> {
    const items: T[] = [];
    let more: Query | undefined = query;
    for (let page = 0; more !== undefined; page += 1) {
      const body: Json = await this.get(service, path, more);
      const found = body[key];
      if (!Array.isArray(found)) throw new Error(`${service} answered ${path} without ${key}`);
      if (page === MOST_PAGES)
        throw new Error(`${service} answered ${path} with more than ${MOST_PAGES} pages`);
      items.push(...(found as T[]));
      const marker = nextMarker(body, key) ?? undefined;
      more = marker === undefined ? undefined : { ...more, marker };
    }
    return items;
  }

  /**
   * Sends a change. Every change goes through here; a removal carries its order.
   *
   * @throws {NotReached} if nothing was sent
   * @throws {CloudRefusal} if the service refused it
   * @throws {Error} if the answer is lost or is not the service's
   */
  async send(method: Change, service: Service, path: string, options?: SendOptions): Promise<Json>;
  async send(method: 'DELETE', service: Service, path: string, options: SendOptions & Removal): Promise<Json>;
  async send(
    method: Change | 'DELETE',
    service: Service,
    path: string,
    options: SendOptions = {},
  ): Promise<Json> {
    return this.#request(method, service, path, options);
  }

  /** The versions that a service offers, and the `Date` of its answer. @throws as `get` */
  async versions(service: Service): Promise<{ body: Json; date: string | undefined }> {
    return this.#within(undefined, async (signal) => {
      const session = await this.#current(signal);
      const root = session.urlOf(service).replace(/(\/v[\d.]+)\/.*$/, '$1');
      const answer = await this.#exchange({
        method: 'GET',
        url: `${root}/`,
        headers: { 'x-auth-token': session.token, accept: 'application/json' },
        body: undefined,
        signal,
      });
      return { body: parse(answer, service), date: answer.headers['date'] };
    });
  }

  close(): Promise<void> {
    return this.#transport.close();
  }

  async #request(method: Method, service: Service, path: string, options: SendOptions): Promise<Json> {
    const { call } = options;
    this.#assertInTime(call);
    const restMs = (this.#rests.get(service) ?? 0) - this.#now();
    if (restMs > 0)
      throw new CloudRefusal(429, `${service} asked for a pause of ${Math.ceil(restMs / 1000)} s`, restMs);
    return this.#within(call, async (signal) => {
      const session = await this.#current(signal);
      const answer = await this.#ask(session, method, service, path, options, signal);
      if (answer.status !== 401) return this.#read(answer, service);
      // The token was revoked or expired early. A 401 has no effect, so the request may be sent again.
      const renewed = await this.#current(signal, session);
      return this.#read(await this.#ask(renewed, method, service, path, options, signal), service);
    });
  }

  #ask(
    session: Session,
    method: Method,
    service: Service,
    path: string,
    { query = {}, body, call }: SendOptions,
    signal: AbortSignal,
  ): Promise<Answer> {
    this.#assertInTime(call);
    const search = new URLSearchParams(query).toString();
    const { microversion } = services[service];
    return this.#exchange({
      method,
      url: `${session.urlOf(service)}${path}${search === '' ? '' : `?${search}`}`,
      headers: {
        'x-auth-token': session.token,
        accept: 'application/json',
        ...(microversion && { 'OpenStack-API-Version': `${service} ${microversion}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      body: body === undefined ? undefined : JSON.stringify(body),
      signal,
    });
  }

  /** @throws {NotReached} */
  #assertInTime(call: Call | undefined): void {
    if (call !== undefined && (call.signal.aborted || this.#now() >= call.deadline))
      throw new NotReached('the deadline of this call has passed: nothing was sent');
  }

  #read(answer: Answer, service: Service): Json {
    if (answer.status >= 400) {
      const refusal = toRefusal(answer, service);
      const restMs = isThrottled(answer) ? (refusal.retryAfterMs ?? 0) : 0;
      if (restMs > 0) this.#rests.set(service, this.#now() + Math.min(restMs, LONGEST_REST_MS));
      throw refusal;
    }
    return answer.text === '' ? {} : parse(answer, service);
  }

  /**
   * The session. Requests a new token shortly before expiry, or if a service `refused` the last one. Requests share one
   * request for a token.
   */
  async #current(signal: AbortSignal, refused?: Session): Promise<Session> {
    const asked = this.#session;
    const known = await asked?.catch(() => undefined);
    const isGood = known !== undefined && known !== refused;
    if (isGood && known.expiresAt - TOKEN_SPARE_MS > this.#now()) return known;
    // Another request may have begun one meanwhile.
    if (this.#session === asked) this.#begin();
    const session = this.#session as Promise<Session>;
    const isOver = new Promise<never>((_, reject) => {
      signal.addEventListener('abort', () => reject(new NotReached(String(signal.reason))), { once: true });
    });
    return Promise.race([session, isOver]);
  }

  #begin(): void {
    const session = this.#within(undefined, (signal) => this.#authenticate(signal)).catch((error) => {
      // The next request tries again.
      if (this.#session === session) this.#session = undefined;
      if (error instanceof CloudRefusal || error instanceof NotReached) throw error;
      // A token changes nothing.
      throw new NotReached(`Keystone: ${(error as Error).message}`);
    });
    this.#session = session;
  }

  async #authenticate(signal: AbortSignal): Promise<Session> {
    const { authUrl, auth } = this.#cloud;
    const answer = await this.#exchange({
      method: 'POST',
      url: `${authUrl}/auth/tokens`,
      headers: { accept: 'application/json', 'content-type': 'application/json' },
      body: JSON.stringify({ auth }),
      signal,
    });
    const { status } = answer;
    if (status === 401 || status === 403)
      throw new CloudRefusal(401, `Keystone refuses the credential (${status})`);
    if (status >= 400) throw new NotReached(`Keystone answers ${status} to the request for a token`);
    return toSession(answer.headers['x-subject-token'], parse(answer, 'identity'), this.#cloud);
  }

  /** @throws {NotReached} if no connection was made */
  async #exchange(sent: Sent): Promise<Answer> {
    try {
      return await this.#transport.send(sent);
    } catch (error) {
      const { origin } = new URL(sent.url);
      if (hasCode(error, UNSENT) || sent.method === 'GET')
        throw new NotReached(`${origin} does not answer (${(error as Error).message})`);
      throw new Error(`${origin}: the answer is lost (${(error as Error).message})`);
    }
  }

  async #within<T>(call: Call | undefined, task: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const over = new AbortController();
    const withinMs = this.#asking?.withinMs ?? REQUEST_TIMEOUT_MS;
    const timer = setTimeout(() => over.abort(new Error(`no answer within ${withinMs} ms`)), withinMs);
    const ends = [over.signal, this.#asking?.signal, call?.signal].filter((one) => one !== undefined);
    try {
      return await task(AbortSignal.any(ends));
    } finally {
      clearTimeout(timer);
    }
  }
}

/** The marker of the next page. Nova and Cinder give `KEY_links`, Glance `next`; Neutron does not page. */
function nextMarker(body: Json, key: string): string | null {
  const links = body[`${key}_links`] as { rel: string; href: string }[] | undefined;
  const next = links?.find(({ rel }) => rel === 'next')?.href ?? (body['next'] as string | undefined);
  return next === undefined ? null : new URL(next, 'http://cloud').searchParams.get('marker');
}

function parse({ text, status }: Answer, service: string): Json {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null) return value as Json;
  } catch {}
  throw new Error(`${service} answered ${status} with a body that is not JSON: ${text.slice(0, 200)}`);
}

const isThrottled = ({ status }: Answer): boolean => status === 429 || status === 503;

/** @throws {Error} if another server, such as a proxy, has answered: its 404 does not mean that something is gone */
function toRefusal(answer: Answer, service: Service): CloudRefusal {
  const seconds = Number(answer.headers['retry-after']);
  const retryAfterMs = seconds > 0 ? seconds * 1000 : undefined;
  const message = messageOf(answer);
  if (message === undefined && !isThrottled(answer) && answer.status !== 401)
    throw new Error(
      `${service} answered ${answer.status} with an unexpected body: ${answer.text.slice(0, 200)}`,
    );
  return new CloudRefusal(answer.status, `${service}: ${message ?? `status ${answer.status}`}`, retryAfterMs);
}

/** The message of `{"itemNotFound": {"message": …}}`, `{"NeutronError": …}`, `{"errors": [{"detail": …}]}`. */
function messageOf({ text }: Answer): string | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  const [first] = Object.values((value ?? {}) as Json);
  const fault = (Array.isArray(first) ? first[0] : first) as Json | string | undefined;
  if (typeof fault === 'string') return fault;
  const message = fault?.['message'] ?? fault?.['detail'];
  return typeof message === 'string' ? message.replaceAll(/\s+/g, ' ').trim() : undefined;
}
