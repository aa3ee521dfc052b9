import { idOf, listOf, textField } from '../wire/json.ts';
import type { Wire } from '../wire/wire.ts';
import type { Entry, Ledger } from './ledger.ts';

/**
 * What a look into the list found of an entry whose create had no clear answer. `absent` only where the list shows
 * names, so that it would have been recognised; otherwise it `cannot-tell`.
 */
export type Found = { kind: 'found'; id: string } | { kind: 'absent' } | { kind: 'cannot-tell'; why: string };

/** Looks for an instance by its name, which may have got a suffix, among those that the run does not know yet. */
export async function lookFor(
  wire: Wire,
  ledger: Ledger,
  entry: Entry,
  signal?: AbortSignal,
): Promise<Found> {
  const exchange = await wire.send('ledger/look-for', { method: 'GET', path: '/instances' }, signal);
  const instances = listOf(exchange);
  if (instances === undefined)
    return { kind: 'cannot-tell', why: 'GET /instances did not answer with a list' };
  const known = new Set(ledger.entries.flatMap(({ id }) => id ?? []));
  const match = instances.find(
    (instance) => textField(instance, 'name')?.startsWith(entry.name) && !known.has(idOf(instance) ?? ''),
  );
  const id = idOf(match);
  if (match !== undefined && id === undefined)
    return { kind: 'cannot-tell', why: 'GET /instances shows it without an id' };
  if (id !== undefined) return { kind: 'found', id };
  const showsNames = instances.every((instance) => textField(instance, 'name') !== undefined);
  return showsNames
    ? { kind: 'absent' }
    : { kind: 'cannot-tell', why: 'GET /instances lists instances without a name' };
}
