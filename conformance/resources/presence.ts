import type { TargetClient } from '../http/target-client.ts';
import { idOf, type JsonObject, numberField, objectsField, stringField } from '../text/json.ts';
import { printable } from '../text/printable.ts';
import { jsonOf, listOf, statusOf, successOf } from '../transcript/exchange.ts';
import type { Exchange } from '../transcript/records.ts';
import { type Prospect, prospectOfList } from '../waiting/answers.ts';
import type { Entry, Ledger } from './ledger.ts';

/**
 * Whether a read of an instance and a later list together confirm that it is gone. The read does not count if the list
 * is unreadable or still shows the instance alive. If the list exceeds the suite's own size limit, the read alone
 * decides.
 */
export function isConfirmedGone(id: string, read: Exchange, list: Exchange): boolean {
  if (list.failure?.kind === 'too_large') return isGone(read);
  const instances = listOf(list);
  if (!isGone(read) || instances === undefined) return false;
  return !instances.some((instance) => idOf(instance) === id && instance['status'] !== 'DESTROYED');
}

/** Whether a read shows that an instance is gone: 404, DESTROYED, or 410, which the contract does not have. */
export function isGone(read: Exchange): boolean {
  return [404, 410].includes(statusOf(read) ?? 0) || stringField(successOf(read), 'status') === 'DESTROYED';
}

/**
 * The result of searching the list for an entry whose create had no clear answer. `absent` only if the list shows
 * names; otherwise `cannot-tell`.
 */
export type Found =
  | { kind: 'found'; id: string }
  | { kind: 'absent' }
  /** `list`: what another read of the list may still show. */
  | { kind: 'cannot-tell'; why: string; list: Prospect };

/**
 * Searches the list for an instance by its name (the target may have added a suffix) among those without a ledger
 * entry.
 */
export async function findByName(
  client: TargetClient,
  ledger: Ledger,
  entry: Entry,
  signal?: AbortSignal,
): Promise<Found> {
  const exchange = await client.send('ledger/look-for', { method: 'GET', path: '/instances' }, signal);
  return findIn(exchange, ledger, entry);
}

function findIn(exchange: Exchange, ledger: Ledger, entry: Entry): Found {
  const instances = listOf(exchange);
  if (instances === undefined)
    return {
      kind: 'cannot-tell',
      why: 'GET /instances did not answer with a list',
      list: prospectOfList(exchange),
    };
  const known = new Set(ledger.entries.flatMap(({ id }) => id ?? []));
  const match = instances.find(
    (instance) => stringField(instance, 'name')?.startsWith(entry.name) && !known.has(idOf(instance) ?? ''),
  );
  const id = idOf(match);
  if (match !== undefined && id === undefined)
    return { kind: 'cannot-tell', why: 'GET /instances shows it without an id', list: { mayFollow: 'yes' } };
  if (id !== undefined) return { kind: 'found', id };
  const showsNames = instances.every((instance) => stringField(instance, 'name') !== undefined);
  return showsNames
    ? { kind: 'absent' }
    : {
        kind: 'cannot-tell',
        why: 'GET /instances lists instances without a name',
        list: { mayFollow: 'yes' },
      };
}

/** How long an instance may take to appear in the list, if its create got no answer. */
const LONGEST_TO_SHOW_MS = 180_000;
/** The same for a create with an unclear answer. */
const LONGEST_AFTER_ANSWER_MS = 60_000;

/** Whether enough time has passed for the list to show the result of an unclear create. */
export function isLate({ intendedAt, isAnswered }: Entry, wallMs: number, patienceMs: number): boolean {
  const longestMs = isAnswered === true ? LONGEST_AFTER_ANSWER_MS : LONGEST_TO_SHOW_MS;
  return wallMs - intendedAt >= Math.min(longestMs, patienceMs);
}

/** Searches once for all instances whose create had no clear answer. Sends no request if there are none. */
export async function lookForStrays(
  client: TargetClient,
  ledger: Ledger,
  { wallMs, patienceMs, signal }: { wallMs: number; patienceMs: number; signal: AbortSignal },
): Promise<void> {
  const strays = ledger.open.filter(({ type, id }) => type === 'instance' && id === undefined);
  if (strays.length === 0) return;
  const list = await client.send('ledger/look-for', { method: 'GET', path: '/instances' }, signal);
  for (const entry of strays) {
    const found = findIn(list, ledger, entry);
    if (found.kind === 'found') ledger.made(entry, found.id);
    if (found.kind === 'absent' && isLate(entry, wallMs, patienceMs)) ledger.refused(entry);
  }
}

/**
 * Adds instances to the ledger that are listed under a name of this run and missing from the ledger: the target
 * refused the request but created them, or the ledger was truncated.
 */
export function adoptOrphans(ledger: Ledger, list: Exchange): void {
  const instances = objectsField(jsonOf(list), 'instances');
  const known = new Set(ledger.entries.map(({ id }) => id));
  const awaited = ledger.open.filter(({ id }) => id === undefined);
  for (const instance of instances) {
    const [id, name = ''] = [idOf(instance), stringField(instance, 'name')];
    if (id === undefined || known.has(id) || !ledger.names.isOwn(name)) continue;
    if (instance['status'] === 'DESTROYED' || awaited.some((entry) => name.startsWith(entry.name))) continue;
    takeOver(ledger, list.step, instance);
  }
}

/** Adds an instance to the ledger that no create of the run returned, so that it is destroyed. */
export function takeOver(ledger: Ledger, step: string, instance: JsonObject): void {
  const [id = '', region] = [idOf(instance), stringField(instance, 'region')];
  const name = stringField(instance, 'name') ?? id;
  const entry = { type: 'instance', step, name, ...(region !== undefined && { region }) } as const;
  ledger.made(ledger.intend(entry), id, numberField(instance, 'price_per_hour'));
}

/** Opens the entries again that were read as gone, and are alive in this list. */
export function reopenListed(ledger: Ledger, list: Exchange): void {
  const alive = new Map(
    (listOf(list) ?? []).map((instance) => [idOf(instance), stringField(instance, 'status')]),
  );
  for (const entry of ledger.entries) {
    const status = alive.get(entry.id);
    if (entry.state !== 'gone' || status === undefined || status === 'DESTROYED') continue;
    ledger.reopen(
      entry,
      `it was read as gone, and GET /instances still lists it as ${printable(status, 40)}`,
    );
  }
}
