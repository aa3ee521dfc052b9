import type { Context } from 'hono';
import { askedBy } from '../accounts/asked-by.ts';
import { CredentialRefused, type Owner } from '../accounts/authenticate.ts';
import type { RequestedBy } from '../model/history.ts';
import type { Store } from '../model/store.ts';
import type { HttpEnv } from './deps.ts';

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
