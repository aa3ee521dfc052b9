import type { Clock } from '../../ports/clock.ts';
import { RateLimited } from '../contract/errors.ts';
import type { RateLimitOptions } from '../model/options.ts';
import type { Store } from '../model/store.ts';

export type AddressWindow = 'catalog' | 'account' | 'other';

/** The state of a rate limit, as the headers report it. */
export interface RateLimitStatus {
  limit: number;
  remaining: number;
  /** When the window ends. */
  endsAt: number;
}

const MAX_KNOWN = 100_000;

/** Fixed windows that begin with their first request (M: Limits). */
export class RateLimits {
  readonly options: RateLimitOptions;
  readonly #store: Pick<Store, 'countRequest' | 'uncountRequest'>;
  readonly #clock: Clock;
  /** The last known states. Replies to uncounted requests show them, and floods are refused by them without a write. */
  readonly #known = new Map<string, RateLimitStatus>();

  constructor(
    { store, clock }: { store: Pick<Store, 'countRequest' | 'uncountRequest'>; clock: Clock },
    options: RateLimitOptions,
  ) {
    this.#store = store;
    this.#clock = clock;
    this.options = options;
  }

  /** The window that counts a request (M: Limits). Null for a create: see {@link admission}. */
  windowOf(method: string, path: string): AddressWindow | null {
    if (method === 'POST' && path === '/api/deployments') return null;
    const read = method === 'HEAD' ? 'GET' : method;
    return (
      rules.find(({ methods, pattern }) => methods.includes(read) && pattern.test(path))?.window ?? 'other'
    );
  }

  /** Counts one request of an address. */
  async countAddress(window: AddressWindow, address: string): Promise<RateLimitStatus> {
    return this.#count(`${window}:${address}`, this.#limitOf(window));
  }

  /**
   * Takes a place for a create of the user, if one is free. Null: the user has no limit. `ownLimit`: see
   * {@link UserRecord.createLimit}. The store is asked each time, because another server may give a place back.
   */
  async takePlace(userId: string, ownLimit: number | null): Promise<RateLimitStatus | null> {
    const limit = ownLimit ?? this.options.creates;
    if (limit < 0) return null;
    const window = { name: creates(userId), now: this.#clock.now(), lengthMs: this.options.windowMs };
    const { count, endsAt } = await this.#store.countRequest({ ...window, most: limit });
    return { limit, remaining: limit - count, endsAt };
  }

  /** Gives back a taken place: its create was refused. */
  async giveBack(userId: string, { endsAt }: RateLimitStatus): Promise<void> {
    await this.#store.uncountRequest({ name: creates(userId), endsAt });
  }

  /** The state of an address as far as this process knows, without counting. */
  peek(window: AddressWindow, address: string): RateLimitStatus {
    return this.#current(`${window}:${address}`) ?? this.#fresh(this.#limitOf(window));
  }

  /** @throws {RateLimited} if the request exceeds the limit */
  assertWithin({ remaining, endsAt }: RateLimitStatus): void {
    if (remaining >= 0) return;
    throw new RateLimited({
      windowSeconds: Math.ceil(this.options.windowMs / 1000),
      retryAfterSeconds: Math.max(1, Math.ceil((endsAt - this.#clock.now()) / 1000)),
    });
  }

  async #count(name: string, limit: number): Promise<RateLimitStatus> {
    const known = this.#current(name);
    if (known?.limit === limit && known.remaining < 0) return known;
    const { count, endsAt } = await this.#store.countRequest({
      name,
      now: this.#clock.now(),
      lengthMs: this.options.windowMs,
    });
    const rateLimit = { limit, remaining: limit - count, endsAt };
    if (this.#known.size >= MAX_KNOWN) this.#known.clear();
    this.#known.set(name, rateLimit);
    return rateLimit;
  }

  /** The known state of a window; undefined once it has ended. */
  #current(name: string): RateLimitStatus | undefined {
    const known = this.#known.get(name);
    return known !== undefined && known.endsAt > this.#clock.now() ? known : undefined;
  }

  #fresh(limit: number): RateLimitStatus {
    return { limit, remaining: limit, endsAt: this.#clock.now() + this.options.windowMs };
  }

  #limitOf(window: AddressWindow): number {
    const { catalogReads, accountRequests, otherRequests } = this.options;
    return { catalog: catalogReads, account: accountRequests, other: otherRequests }[window];
  }
}

const creates = (userId: string): string => `creates:${userId}`;

const rules: readonly { window: AddressWindow; methods: readonly string[]; pattern: RegExp }[] = [
  { window: 'catalog', methods: ['GET'], pattern: /^\/api\/(providers|gpu-offers)$/ },
  { window: 'account', methods: ['GET', 'PATCH', 'DELETE'], pattern: /^\/api\/deployments(\/[^/]+)?$/ },
  { window: 'account', methods: ['GET'], pattern: /^\/api\/deployments\/[^/]+\/can-terminate$/ },
  { window: 'account', methods: ['GET', 'POST', 'DELETE'], pattern: /^\/api\/ssh-keys(\/[^/]+)?$/ },
  { window: 'account', methods: ['GET'], pattern: /^\/api\/(balance|teams|teams\/details\/[^/]+)$/ },
];

/** M: Limits: "Rate-limit headers on every response"; X-RateLimit-Reset in seconds since the epoch. */
export function rateLimitHeaders({ limit, remaining, endsAt }: RateLimitStatus): Record<string, string> {
  return {
    'X-RateLimit-Limit': String(limit),
    'X-RateLimit-Remaining': String(Math.max(0, remaining)),
    'X-RateLimit-Reset': String(Math.ceil(endsAt / 1000)),
  };
}
