import type { Chance } from '../../kernel/chance.ts';
import type { ServerProcess } from '../../kernel/process.ts';
import { hold, Violation } from '../../kernel/violation.ts';
import { exchange } from '../../kernel/wire.ts';
import type { MarketUser } from '../accounts.ts';
import type { MarketBase } from '../providers/market-base.ts';
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

interface UsersWorld extends MarketBase {
  readonly replicas: readonly MarketReplica[];
}

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
    const { replicas, scenario } = this.#world;
    const serving = replicas.filter((replica) => replica.serving !== undefined);
    if (serving.length === 0) return undefined;
    const replica = this.chance.pick(serving);
    const { process, marketplace } = replica.serving as NonNullable<typeof replica.serving>;
    if (asked.method !== 'GET') this.#mayDie(replica, process);
    const reply = await exchange(this.#world, process, marketplace.app, {
      ...asked,
      key: user.key,
      label: `${user.name}#${++this.#sent}`,
      isLost: !this.#world.isCalm && this.chance.happens(scenario.lostReplies),
    });
    if (reply === undefined) return undefined;
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
