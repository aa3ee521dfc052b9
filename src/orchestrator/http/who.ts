import type { Context } from 'hono';
import { askedBy } from '../accounts/asked-by.ts';
import { CredentialRefused, type Owner } from '../accounts/authenticate.ts';
import type { RequestedBy } from '../model/history.ts';
import type { Store } from '../model/store.ts';
import type { HttpEnv } from './deps.ts';

/** A caller as the log and the history name it: the id of its key, never the key. */
export function nameOf({ accountId, keyId, origin }: Owner) {
  return { account: accountId, key: keyId ?? origin };
}

/** Has the log name whose credential was refused, where that is known. Rejects as `checked` does. */
export async function namingRefused<T>(context: Context<HttpEnv>, checked: Promise<T>): Promise<T> {
  try {
    return await checked;
  } catch (error) {
    if (error instanceof CredentialRefused) context.set('who', nameOf(error.owner));
    throw error;
  }
}

/** Who sends this request, and from where. */
export function requestedBy(context: Context<HttpEnv>): RequestedBy {
  return { ...nameOf(context.get('principal')), address: context.get('address') };
}

/** `deps` for a use case that writes, so that the history of the instance names who asked. */
export function asked<Deps extends { store: Store }>(deps: Deps, context: Context<HttpEnv>): Deps {
  return { ...deps, store: askedBy(deps.store, requestedBy(context)) };
}
