import type { Context, MiddlewareHandler } from 'hono';
import { askedBy } from '../accounts/asked-by.ts';
import { type Authenticator, CredentialRefused, type Owner } from '../accounts/authenticate.ts';
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

/** Authenticates again after the body, which may take long to arrive: the key may be revoked meanwhile. */
export function stillAuthenticated(authenticator: Authenticator): MiddlewareHandler<HttpEnv> {
  return async (context, next) => {
    const isAnonymous = context.get('who') === undefined;
    if (!isAnonymous && context.req.method !== 'GET') await authenticate(context, authenticator);
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

/** `deps` for a use case that writes: the history of the instance records the requester. */
export function asked<Deps extends { store: Store }>(deps: Deps, context: Context<HttpEnv>): Deps {
  return { ...deps, store: askedBy(deps.store, requestedBy(context)) };
}
