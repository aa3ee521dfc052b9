import { z } from '@hono/zod-openapi';
import { MARKETPLACE } from '../options.ts';
import type { JournalEntry } from './entry.ts';
import { isMatch, type JournalFilter, journalFilterSchema } from './filter.ts';

const one = journalFilterSchema.omit({ limit: true });

function assertion<Name extends string, Shape extends z.ZodRawShape = Record<never, never>>(
  name: Name,
  description: string,
  shape: Shape = {} as Shape,
) {
  return z.strictObject({ assert: z.literal(name), ...shape, where: one.optional() }).meta({ description });
}
const seconds = z.number().positive();
const count = z.int().nonnegative().optional();

/**
 * An assertion about a client's requests. `where` selects the requests; the default is all. What the marketplace sends
 * counts only if `where` has its account, `marketplace`.
 */
export const assertionSchema = z
  .discriminatedUnion('assert', [
    assertion(
      'polled_at_least_every',
      'While an instance or deployment was active, it was read at least this often, not counting the time that Retry-After asked for.',
      { seconds },
    ),
    assertion('polled_at_most_every', 'No instance or deployment was read more often than this.', {
      seconds,
    }),
    assertion(
      'never_created_twice',
      'No two creates with the same name (without a name: the same body) made two resources, unless the first had been deleted or had ended; a lost answer counts as the resource that the server made.',
    ),
    assertion(
      'all_destroyed',
      'For each created resource, a delete was accepted, or a request found it ended.',
    ),
    assertion('not_read_when_gone', 'Once a read found a resource gone (404), it was not read again.'),
    assertion(
      'retry_after_kept',
      'After an answer with Retry-After, the same request was not repeated before that time.',
    ),
    assertion('requests', 'Number of matching requests.', {
      exactly: count,
      at_least: count,
      at_most: count,
    }),
    z
      .strictObject({ assert: z.literal('in_order'), filters: z.array(one).min(1) })
      .meta({ description: 'One request matches each filter, in this order.' }),
  ])
  .meta({ id: 'Assertion' });
export type Assertion = z.input<typeof assertionSchema>;
export type ParsedAssertion = z.infer<typeof assertionSchema>;

export const assertionResultSchema = z
  .object({
    assert: z.string(),
    holds: z.boolean(),
    message: z.string(),
    entries: z.array(z.int()).meta({ description: 'Numbers of the entries that violate it.' }),
  })
  .meta({ id: 'AssertionResult' });
export type AssertionResult = z.infer<typeof assertionResultSchema>;

/** A violation, with the entries that show it. */
export interface Breach {
  message: string;
  /** The resource concerned, if it is one. */
  resource?: string;
  entries: readonly JournalEntry[];
}

/** Checks an assertion against the entries until `now`. */
export function checkAssertion(
  assertion: ParsedAssertion,
  entries: readonly JournalEntry[],
  now: number,
): AssertionResult {
  const breaches = breachesOf(assertion, entries, now);
  return {
    assert: assertion.assert,
    holds: breaches.length === 0,
    message: breaches.map(({ message }) => message).join('; ') || 'it holds',
    entries: breaches.flatMap((breach) => breach.entries.map(({ number }) => number)),
  };
}

/** The violations of an assertion by the entries until `now`. */
export function breachesOf(assertion: ParsedAssertion, all: readonly JournalEntry[], now: number): Breach[] {
  if (assertion.assert === 'in_order') return outOfOrder(assertion.filters, all);
  const where: JournalFilter = assertion.where ?? {};
  const entries = all.filter((entry) => isMatch(entry, where) && isOfClient(entry, where.account));
  const inEach = (find: (id: string, life: JournalEntry[]) => Breach[]): Breach[] =>
    lives(entries).flatMap(({ id, life }) => find(id, life));
  switch (assertion.assert) {
    case 'polled_at_least_every':
      return inEach((id, life) => slowPolls(id, life, assertion.seconds, now));
    case 'polled_at_most_every':
      return inEach((id, life) => fastPolls(id, life, assertion.seconds));
    case 'never_created_twice':
      return doubleCreates(entries);
    case 'all_destroyed':
      return inEach(leftBehind);
    case 'not_read_when_gone':
      return inEach(readsOfGone);
    case 'retry_after_kept':
      return hastyRetries(entries);
    case 'requests':
      return wrongCount(assertion, entries);
  }
}

/** The marketplace is not the client under test, unless its account is asked for. */
export function isOfClient(entry: JournalEntry, account: string | undefined): boolean {
  return account === MARKETPLACE || entry.account !== MARKETPLACE;
}

/** Operations that read, create and delete one instance, volume or deployment. */
export const READS = new Set(['getInstance', 'getDeployment']);
export const CREATES = new Set(['createInstance', 'createVolume', 'createDeployment']);
export const DELETES = new Set(['destroyInstance', 'deleteVolume', 'terminateDeployment']);
/** Final statuses, after which polls are not required. */
const FINAL = new Set(['ERROR', 'OFFLINE', 'DESTROYED', 'failed', 'terminated', 'terminated-provider']);

/** The entries of each resource, by its id, with the create that made it. */
export function lives(entries: readonly JournalEntry[]): { id: string; life: JournalEntry[] }[] {
  const found = new Map<string, { id: string; life: JournalEntry[] }>();
  for (const entry of entries) {
    const made = madeBy(entry);
    for (const id of made.length === 0 && entry.resource !== undefined ? [entry.resource] : made) {
      const key = `${entry.provider} ${id}`;
      const known = found.get(key);
      if (known === undefined) found.set(key, { id, life: [entry] });
      else known.life.push(entry);
    }
  }
  return [...found.values()];
}

/** The resources that a create made, even if its answer was lost, or if it was delivered twice. */
function madeBy({ operation = '', status, resource, server, response, made }: JournalEntry): string[] {
  if (!CREATES.has(operation)) return [];
  if (made !== undefined) return made;
  const last = server ?? { status: status ?? 0, resource };
  const isMade =
    response.headers['idempotent-replayed'] !== 'true' && last.status >= 200 && last.status < 300;
  return isMade && last.resource !== undefined ? [last.resource] : [];
}

const isRead = ({ operation = '' }: JournalEntry): boolean => READS.has(operation);
/** Whether the entry is the create of this resource, and its answer told the client. */
const isKnownMade = (entry: JournalEntry, id: string): boolean =>
  madeBy(entry).includes(id) && entry.resource === id && entry.status !== null && entry.status < 300;

/** Finds polls that came too late, from the create's answer or the first read until a final status was seen. */
function slowPolls(id: string, life: readonly JournalEntry[], seconds: number, now: number): Breach[] {
  const breaches: Breach[] = [];
  let last: JournalEntry | undefined;
  const check = (at: number, end?: JournalEntry): void => {
    if (last === undefined || silenceUntil(at, last) <= seconds) return;
    const until = end === undefined ? ', until now' : '';
    breaches.push({
      message: `${id} was not read for ${silenceUntil(at, last)} s${until}`,
      resource: id,
      entries: end === undefined ? [last] : [last, end],
    });
  };
  for (const entry of life) {
    if (isRead(entry)) check(Date.parse(entry.at), entry);
    if (last !== undefined && isEnd(entry)) return breaches;
    if (isKnownMade(entry, id) || isRead(entry)) last = entry;
  }
  check(now);
  return breaches;
}

/** The seconds until `at` in which the client could have sent its next request: after the answer, and after its Retry-After. */
export function silenceUntil(
  at: number,
  { at: sentAt, duration_ms: durationMs, response }: JournalEntry,
): number {
  const askedMs = Number(response.headers['retry-after'] ?? 0) * 1000;
  return (at - Date.parse(sentAt) - Math.max(durationMs, askedMs || 0)) / 1000;
}

function fastPolls(id: string, life: readonly JournalEntry[], seconds: number): Breach[] {
  const reads = life.filter(isRead);
  return reads.flatMap((entry, index) => {
    const before = reads[index - 1];
    if (before === undefined || secondsBetween(before, entry) >= seconds) return [];
    return {
      message: `${id} was read twice within ${secondsBetween(before, entry)} s`,
      resource: id,
      entries: [before, entry],
    };
  });
}

/** Whether the client learned that the resource has ended. */
export function isEnd({ operation = '', status, response }: JournalEntry): boolean {
  if (status === 404) return true;
  if (DELETES.has(operation) && operation !== 'destroyInstance') return status === 200 || status === 204;
  const shown = (response.body as { status?: unknown } | undefined)?.status;
  return READS.has(operation) && FINAL.has(String(shown));
}

/** Finds creates of the same that made several resources, none of which had ended before the next create. */
function doubleCreates(entries: readonly JournalEntry[]): Breach[] {
  const groups: JournalEntry[][] = [];
  const latest = new Map<string, JournalEntry[]>();
  const ended = new Set<string | undefined>();
  for (const entry of entries) {
    const { operation = '', status, resource } = entry;
    if (isEnd(entry) || (DELETES.has(operation) && status === 200)) ended.add(resource);
    if (madeBy(entry).length === 0) continue;
    const { name, ...rest } = (entry.request.body ?? {}) as Record<string, unknown>;
    const what = typeof name === 'string' ? name : JSON.stringify(rest);
    const key = [entry.provider, entry.account, operation, what].join(' ');
    const before = latest.get(key) ?? [];
    const isOpen = before.flatMap(madeBy).some((id) => !ended.has(id));
    const same = isOpen ? before : [];
    if (!isOpen) groups.push(same);
    same.push(entry);
    latest.set(key, same);
  }
  return groups.flatMap((same) => {
    const ids = [...new Set(same.flatMap(madeBy))];
    if (ids.length < 2) return [];
    return { message: `the same create made ${ids.join(' and ')}`, entries: same };
  });
}

function leftBehind(id: string, life: readonly JournalEntry[]): Breach[] {
  const made = life.find((entry) => madeBy(entry).includes(id));
  const isDeleted = life.some(
    ({ operation = '', status }) => DELETES.has(operation) && (status === 200 || status === 204),
  );
  return made === undefined || isDeleted || life.some(isEnd)
    ? []
    : [{ message: `${id} was made and not destroyed`, resource: id, entries: [made] }];
}

function readsOfGone(id: string, life: readonly JournalEntry[]): Breach[] {
  const gone = life.findIndex((entry) => isRead(entry) && entry.status === 404);
  const later = gone < 0 ? [] : life.slice(gone + 1).filter(isRead);
  return later.length === 0
    ? []
    : [{ message: `${id} was read ${later.length} times after it was gone`, resource: id, entries: later }];
}

function hastyRetries(entries: readonly JournalEntry[]): Breach[] {
  const breaches: Breach[] = [];
  const waits = new Map<string, { entry: JournalEntry; until: number; seconds: number }>();
  for (const entry of entries) {
    const { provider, account = '', method, path, response } = entry;
    const key = [provider, account, method, path].join(' ');
    const wait = waits.get(key);
    if (wait !== undefined && Date.parse(entry.at) < wait.until)
      breaches.push({
        message: `${method} ${path} was sent again after ${secondsBetween(wait.entry, entry)} s, and not after ${wait.seconds} s`,
        entries: [wait.entry, entry],
      });
    const retryAfterS = Number(response.headers['retry-after'] ?? Number.NaN);
    if (Number.isNaN(retryAfterS)) waits.delete(key);
    else waits.set(key, { entry, until: Date.parse(entry.at) + retryAfterS * 1000, seconds: retryAfterS });
  }
  return breaches;
}

function wrongCount(
  { exactly, at_least, at_most }: Extract<ParsedAssertion, { assert: 'requests' }>,
  entries: readonly JournalEntry[],
): Breach[] {
  const least = exactly ?? at_least ?? (at_most === undefined ? 1 : 0);
  const most = exactly ?? at_most ?? Number.POSITIVE_INFINITY;
  if (entries.length >= least && entries.length <= most) return [];
  const range = most === Number.POSITIVE_INFINITY ? `at least ${least}` : `${least} to ${most}`;
  const expected = least === most ? least : range;
  return [{ message: `${entries.length} requests match, expected ${expected}`, entries }];
}

function outOfOrder(filters: readonly JournalFilter[], entries: readonly JournalEntry[]): Breach[] {
  let from = 0;
  for (const [index, one] of filters.entries()) {
    const found = entries.findIndex((entry, at) => at >= from && isMatch(entry, one));
    if (found < 0)
      return [{ message: `no request matches filters[${index}] after the previous filters`, entries: [] }];
    from = found + 1;
  }
  return [];
}

function secondsBetween(a: JournalEntry, b: JournalEntry): number {
  return (Date.parse(b.at) - Date.parse(a.at)) / 1000;
}
