import type { Context, MiddlewareHandler } from 'hono';
import type { Clock } from '../../ports/clock.ts';
import { type Authenticator, CredentialRefused, type Owner, onBehalfOf } from '../accounts/authenticate.ts';
import type { RequestedBy } from '../model/history.ts';
import type { Store } from '../model/store.ts';
import type { HttpEnv } from './deps.ts';

/** O: Endpoints: "Every endpoint except POST /auth/token requires the bearer credential." */
export function authentication(authenticator: Authenticator): MiddlewareHandler<HttpEnv> {
  return async (context, next) => {
    if (context.req.path !== '/v1/auth/token') await authenticate(context, authenticator);
    return next();
  };
}

/** Sets the request's principal. @throws {ApiError} `unauthorized` */
async function authenticate(context: Context<HttpEnv>, authenticator: Authenticator): Promise<void> {
  const header = context.req.header('authorization');
  const principal =
    authenticator.remembered(header) ?? (await namingRefused(context, authenticator.authenticate(header)));
  context.set('principal', principal);
  context.set('who', nameOf(principal));
}

/** The names of a caller in the log and the history: the id of its key, never the key. */
export function nameOf({ accountId, keyId, origin }: Owner) {
  return { account: accountId, key: keyId ?? origin };
}

/** Adds the owner of a refused credential to the log, if it is known. Settles as `checked` does. */
export async function namingRefused<T>(context: Context<HttpEnv>, checked: Promise<T>): Promise<T> {
  try {
    return await checked;
  } catch (error) {
    if (error instanceof CredentialRefused) context.set('who', nameOf(error.owner));
    throw error;
  }
}

/** The sender and the address of this request. */
export function requestedBy(context: Context<HttpEnv>): RequestedBy {
  return { ...nameOf(context.get('principal')), address: context.get('address') };
}

/** `deps` for the use case of a request: what it writes is written for the requester. */
export function forRequester<Deps extends { store: Store; clock: Clock }>(
  deps: Deps,
  context: Context<HttpEnv>,
): Deps {
  return { ...deps, store: onBehalfOf(deps, requestedBy(context), context.get('principal')) };
}

/** Returns a function that gives the first arguments of a use case on one resource. */
export const useCaseOn =
  <Deps extends { store: Store; clock: Clock }>(deps: Deps) =>
  (context: Context<HttpEnv>, id: string) =>
    [forRequester(deps, context), context.get('principal').accountId, id] as const;
