import type { Context, MiddlewareHandler, Next } from 'hono';
import { ApiError } from '../contract/errors.ts';
import { keptSince } from '../model/create-once.ts';
import { KeyRefused } from '../teams/authenticate.ts';
import type { HttpDeps, HttpEnv } from './deps.ts';
import { type RateLimitStatus, rateLimitHeaders } from './rate-limits.ts';

type Deps = Pick<HttpDeps, 'authenticator' | 'rateLimits' | 'store' | 'clock'>;

/** Paths with no or optional authentication (M: Authentication, 2). */
const PUBLIC = /^\/api\/providers$/;
const OPTIONAL = /^\/api\/gpu-offers$/;

/**
 * Counts a request for its address before it checks the credential, which stops floods of wrong keys. An accepted create
 * counts for its user (M: Limits), a refused one for its address.
 */
export function admission(deps: Deps): MiddlewareHandler<HttpEnv> {
  return async (context, next) => {
    const { rateLimits } = deps;
    const { method, path } = context.req;
    const window = rateLimits.windowOf(method, path);
    if (window === null) return admitCreate(deps, context, next);
    const rateLimit = await rateLimits.countAddress(window, context.get('network'));
    setRateLimitHeaders(context, rateLimit);
    rateLimits.assertWithin(rateLimit);
    const isReadOnly = method === 'GET' || method === 'HEAD';
    const needsNone = isReadOnly && PUBLIC.test(path);
    const isOptional = isReadOnly && OPTIONAL.test(path) && context.req.header('authorization') === undefined;
    if (!needsNone && !isOptional) await authenticate(deps, context);
    return next();
  };
}

/** Authenticates again once the body has arrived: that can take long, and the key may be revoked meanwhile. */
export function stillAdmitted(deps: Deps): MiddlewareHandler<HttpEnv> {
  return async (context, next) => {
    if (context.get('caller') !== undefined) await authenticate(deps, context);
    return next();
  };
}

/**
 * A create holds a place of its user while it is under way, so that parallel ones stay within the limit. It keeps the
 * place unless it is certain that it made nothing. A repeated one counts for its address.
 */
async function admitCreate(deps: Deps, context: Context<HttpEnv>, next: Next): Promise<void> {
  const { rateLimits, store } = deps;
  try {
    await authenticate(deps, context);
  } catch (error) {
    await countForAddress(deps, context);
    throw error;
  }
  const { userId } = context.get('caller');
  if (await isKnownKey(deps, userId, context.req.header('idempotency-key'))) {
    await countForAddress(deps, context);
    return next();
  }
  const user = await store.read.users.byId(userId);
  const place = await rateLimits.takePlace(userId, user?.createLimit ?? null);
  if (place !== null) rateLimits.assertWithin(setRateLimitHeaders(context, place));
  await next();
  const isRefused = context.error instanceof ApiError;
  if (!isRefused && context.get('isReplay') !== true) return;
  if (place !== null) await rateLimits.giveBack(userId, place);
  if (isRefused) await countForAddress(deps, context);
}

/** Whether the create repeats an earlier one, or is refused since it uses its key again. */
async function isKnownKey({ store, clock }: Deps, userId: string, key: string | undefined): Promise<boolean> {
  if (key === undefined) return false;
  return (await store.read.idempotency.find({ userId, key }, keptSince(clock.now()))) !== null;
}

/** @throws {RateLimited} if the address has used up its requests */
async function countForAddress({ rateLimits }: Deps, context: Context<HttpEnv>): Promise<void> {
  const rateLimit = await rateLimits.countAddress('other', context.get('network'));
  rateLimits.assertWithin(setRateLimitHeaders(context, rateLimit));
}

async function authenticate({ authenticator }: Deps, context: Context<HttpEnv>): Promise<void> {
  context.header('Cache-Control', 'private, no-store');
  try {
    const { keyId: key, ...caller } = await authenticator.authenticate(context.req.header('authorization'));
    const who = { user: caller.userId, key };
    context.set('who', who);
    context.set('caller', { ...caller, actsFor: (team) => context.set('who', { ...who, team }) });
  } catch (error) {
    if (error instanceof KeyRefused) context.set('who', { user: error.owner.userId, key: error.owner.id });
    throw error;
  }
}

/** M: Limits: "Rate-limit headers on every response". */
export function setRateLimitHeaders(context: Context<HttpEnv>, rateLimit: RateLimitStatus): RateLimitStatus {
  for (const [name, value] of Object.entries(rateLimitHeaders(rateLimit))) context.header(name, value);
  return rateLimit;
}
