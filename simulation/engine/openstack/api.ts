import type { Doer } from '../engine.ts';

/** A service says no. */
export class Refusal extends Error {
  readonly status: number;
  /** Neutron's name of it. */
  readonly type: string;
  readonly headers: Record<string, string>;

  constructor(status: number, message: string, type = 'BadRequest', headers: Record<string, string> = {}) {
    super(message);
    this.status = status;
    this.type = type;
    this.headers = headers;
  }
}

/** Who has sent a request, by its token. */
export interface Who {
  project: string;
  user: string;
  isAdmin: boolean;
}

/** A request of somebody known to one service. */
export interface Asked {
  method: string;
  /** Below the service's version, without its first slash. */
  path: string;
  query: URLSearchParams;
  body: Record<string, unknown>;
  who: Who;
  /** The microversion that it asks for, as a number: 2.79 is 2079. */
  version: number;
  /** Of the service, to its version. */
  base: string;
  by: Doer;
}

export interface Reply {
  status: number;
  body?: object | undefined;
  headers?: Record<string, string>;
}

type Handler = (asked: Asked, ...ids: string[]) => Reply | Promise<Reply>;
export type Route = [method: string, pattern: string, handler: Handler];

/** Routes by method and path; `*` in a pattern is one part, which the handler is given. */
export function router(routes: readonly Route[]): (asked: Asked) => Promise<Reply> {
  const compiled = routes.map(([method, pattern, handler]) => ({
    handler,
    verbs: new RegExp(`^${method}$`),
    expression: new RegExp(`^${pattern.replaceAll('*', '([^/]+)')}$`),
  }));
  return async (asked) => {
    const matching = compiled.filter(({ expression }) => expression.test(asked.path));
    const found = matching.find(({ verbs }) => verbs.test(asked.method));
    if (found === undefined)
      throw new Refusal(matching.length > 0 ? 405 : 404, 'The resource could not be found.', 'HTTPNotFound');
    const ids = found.expression.exec(asked.path)?.slice(1) ?? [];
    return found.handler(asked, ...ids.map(decodeURIComponent));
  };
}

export const ok = (body: object): Reply => ({ status: 200, body });

/** 2.79 as 2079. */
export function toVersion(text: string): number {
  const [major = 0, minor = 0] = text.split('.').map(Number);
  return major * 1_000 + minor;
}

export function found<T>(value: T | undefined, message: string, type?: string): T {
  if (value === undefined) throw new Refusal(404, message, type);
  return value;
}

export function assertAdmin({ who, path }: Asked): void {
  if (!who.isAdmin)
    throw new Refusal(403, `Policy doesn't allow ${path} to be performed.`, 'PolicyNotAuthorized');
}

/** Those of one page, and the link to the next, if one is full. @throws {Refusal} for a marker that is gone */
export function page<T extends { id: string }>(
  items: readonly T[],
  { query, base, path }: Asked,
  most = 1_000,
): { items: T[]; next: string | undefined } {
  const marker = query.get('marker');
  const limit = Math.min(most, Number(query.get('limit') ?? most) || most);
  const at = marker === null ? -1 : items.findIndex(({ id }) => id === marker);
  if (marker !== null && at < 0) throw new Refusal(400, `marker [${marker}] not found`);
  const shown = items.slice(at + 1, at + 1 + limit);
  const last = shown.at(-1);
  // As the real services, which do not look whether another follows.
  if (last === undefined || shown.length < limit) return { items: shown, next: undefined };
  const next = new URLSearchParams(query);
  next.set('limit', String(limit));
  next.set('marker', last.id);
  return { items: shown, next: `${base}/${path}?${next}` };
}

export const linksTo = (next: string | undefined, name: string): object =>
  next === undefined ? {} : { [`${name}_links`]: [{ rel: 'next', href: next }] };

/** To the second, as Nova, Neutron and Glance write a time. */
export const toSecond = (at: number): string => `${new Date(at).toISOString().slice(0, 19)}Z`;
/** To the microsecond, and without a zone, as Cinder does. */
export const toMicros = (at: number): string => `${new Date(at).toISOString().slice(0, 23)}000`;
