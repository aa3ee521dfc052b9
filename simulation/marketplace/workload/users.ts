import type { Scheduler } from '../../../test/support/time/scheduler.ts';
import type { Chance } from '../../kernel/chance.ts';
import type { Journal } from '../../kernel/journal.ts';
import type { ServerProcess } from '../../kernel/process.ts';
import { hold, Violation } from '../../kernel/violation.ts';
import type { MarketUser } from '../accounts.ts';
import type { MarketReplica } from '../replicas/replica.ts';

export interface MarketAsked {
  method: string;
  path: string;
  body?: object;
}

export interface MarketReply {
  status: number;
  body: unknown;
}

/** Whose resource a request names: the user's own, another team's, or none that exists. */
export type NamedResource = 'own' | 'other' | 'unknown';

/** What the users use of the world. */
export interface UsersWorld {
  readonly chance: Chance;
  readonly scheduler: Scheduler;
  readonly journal: Journal;
  readonly scenario: { readonly lostReplies: number; readonly faultRates: { readonly crash: number } };
  readonly replicas: readonly MarketReplica[];
  readonly isCalm: boolean;
  /** Ends the run with an error that no caller waits for. */
  fail(error: unknown): void;
}

/** A user gives up on a request after this long. */
const PATIENCE_MS = 60_000;

/** The users, and the wire between them and the servers, which may lose an answer. */
export class Users {
  readonly all: readonly MarketUser[];
  readonly chance: Chance;
  readonly #world: UsersWorld;
  #sent = 0;

  constructor(world: UsersWorld, all: readonly MarketUser[]) {
    this.#world = world;
    this.all = all;
    this.chance = world.chance.fork('users');
  }

  /** Sends a request to one of the servers; undefined: no answer came, and the request was applied or not. */
  async ask(user: MarketUser, asked: MarketAsked, expected: NamedResource): Promise<MarketReply | undefined> {
    const { scheduler, journal, replicas, scenario } = this.#world;
    const serving = replicas.filter((replica) => replica.serving !== undefined);
    if (serving.length === 0) return undefined;
    const replica = this.chance.pick(serving);
    const { process, marketplace } = replica.serving as NonNullable<typeof replica.serving>;
    if (asked.method !== 'GET') this.#mayDie(replica, process);
    const label = `${user.name}#${++this.#sent}`;
    const isLost = !this.#world.isCalm && this.chance.happens(scenario.lostReplies);
    journal.note(label, `${asked.method} ${asked.path} to ${process.name}`);
    const answer = process.reach(() => process.orDeath(async () => send(marketplace.app, asked, user.key)));
    const reply = await Promise.race([
      answer.catch(() => undefined),
      process.orDeath(() => scheduler.sleep(PATIENCE_MS)).catch(() => undefined),
    ]);
    scheduler.noteActivity();
    if (reply === undefined || isLost) {
      journal.note(label, 'has no answer');
      return undefined;
    }
    journal.note(label, `${reply.status} ${brief(reply.body)}`);
    try {
      inspectReply(asked, reply, expected);
    } catch (error) {
      if (!(error instanceof Violation)) throw error;
      this.#world.fail(error);
    }
    return reply;
  }

  /** May kill the server soon, while the work of this request is under way: that is when it does most harm. */
  #mayDie(replica: MarketReplica, process: ServerProcess): void {
    const { scheduler, scenario } = this.#world;
    if (!this.chance.happens(2 * scenario.faultRates.crash)) return;
    scheduler.after(this.chance.whole(1, 3_000), () => {
      if (!this.#world.isCalm && replica.process === process) replica.crash('while a request is under way');
    });
  }
}

interface App {
  request(path: string, init: RequestInit): Response | Promise<Response>;
}

async function send(app: App, { method, path, body }: MarketAsked, key: string): Promise<MarketReply> {
  const response = await app.request(path, {
    method,
    headers: {
      Authorization: `Bearer ${key}`,
      ...(body !== undefined && { 'Content-Type': 'application/json' }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, body: text === '' ? null : (JSON.parse(text) as unknown) };
}

/** I18: a resource of another team is 403, an unknown one 404, an own one neither; no request ends in a 500. */
function inspectReply({ method, path }: MarketAsked, reply: MarketReply, expected: NamedResource): void {
  const what = (): string => `${method} ${path} → ${reply.status} ${JSON.stringify(reply.body)}`;
  hold('crash', reply.status !== 500, what, [path]);
  if (reply.status === 503 && codeOf(reply.body) === 'UNAVAILABLE') return;
  if (expected === 'other') hold('I18', reply.status === 403, what, [path]);
  else if (expected === 'unknown') hold('I8', reply.status === 404, what, [path]);
  else hold('I8', ![401, 403, 404, 429].includes(reply.status), what, [path]);
}

function codeOf(body: unknown): string | undefined {
  return typeof body === 'object' && body !== null && 'code' in body ? String(body.code) : undefined;
}

function brief(body: unknown): string {
  if (typeof body !== 'object' || body === null) return '';
  const { id, status, code, error } = body as Record<string, unknown>;
  return [id, status, code, typeof error === 'string' ? error.slice(0, 60) : undefined]
    .filter((part) => typeof part === 'string')
    .join(' ');
}
