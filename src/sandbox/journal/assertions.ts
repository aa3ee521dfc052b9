import { z } from '@hono/zod-openapi';
import type { JournalEntry } from './entry.ts';
import { isMatch, journalFilterSchema } from './filter.ts';

const filter = journalFilterSchema.omit({ limit: true }).optional();
const seconds = z.number().positive();

/** An assertion about a client's requests. `where` selects the requests; the default is all. */
export const assertionSchema = z
  .discriminatedUnion('assert', [
    z
      .strictObject({ assert: z.literal('polled_at_least_every'), seconds, where: filter })
      .meta({ description: 'While an instance or deployment was active, it was read at least this often.' }),
    z
      .strictObject({ assert: z.literal('polled_at_most_every'), seconds, where: filter })
      .meta({ description: 'No instance or deployment was read more often than this.' }),
    z.strictObject({ assert: z.literal('never_created_twice'), where: filter }).meta({
      description:
        'No two creates with the same name (without a name: the same body) made two resources; a lost answer counts as the resource that the server made.',
    }),
    z
      .strictObject({ assert: z.literal('all_destroyed'), where: filter })
      .meta({ description: 'For each created resource, a delete was accepted or found it gone.' }),
    z
      .strictObject({ assert: z.literal('not_read_when_gone'), where: filter })
      .meta({ description: 'Once a read found a resource gone (404), it was not read again.' }),
    z.strictObject({ assert: z.literal('retry_after_kept'), where: filter }).meta({
      description: 'After an answer with Retry-After, the same request was not repeated before that time.',
    }),
    z
      .strictObject({
        assert: z.literal('requests'),
        where: filter,
        exactly: z.int().nonnegative().optional(),
        at_least: z.int().nonnegative().optional(),
        at_most: z.int().nonnegative().optional(),
      })
      .meta({ description: 'Number of matching requests.' }),
    z
      .strictObject({
        assert: z.literal('in_order'),
        filters: z.array(journalFilterSchema.omit({ limit: true })).min(1),
      })
      .meta({ description: 'One request matches each filter, in this order.' }),
  ])
  .meta({ id: 'Assertion' });
export type Assertion = z.input<typeof assertionSchema>;
type ParsedAssertion = z.infer<typeof assertionSchema>;

export const assertionResultSchema = z
  .object({
    assert: z.string(),
    holds: z.boolean(),
    message: z.string(),
    entries: z.array(z.int()).meta({ description: 'Numbers of the entries that violate it.' }),
  })
  .meta({ id: 'AssertionResult' });
export type AssertionResult = z.infer<typeof assertionResultSchema>;

interface Breach {
  message: string;
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

function breachesOf(assertion: ParsedAssertion, all: readonly JournalEntry[], now: number): Breach[] {
  if (assertion.assert === 'in_order') return outOfOrder(assertion.filters, all);
  const entries = all.filter((entry) => isMatch(entry, assertion.where ?? {}));
  switch (assertion.assert) {
    case 'polled_at_least_every':
      return lives(entries).flatMap(({ id, life }) => slowPolls(id, life, assertion.seconds, now));
    case 'polled_at_most_every':
      return lives(entries).flatMap(({ id, life }) => fastPolls(id, life, assertion.seconds));
    case 'never_created_twice':
      return doubleCreates(entries);
    case 'all_destroyed':
      return lives(entries).flatMap(({ id, life }) => leftBehind(id, life));
    case 'not_read_when_gone':
      return lives(entries).flatMap(({ id, life }) => readsOfGone(id, life));
    case 'retry_after_kept':
      return hastyRetries(entries);
    case 'requests':
      return wrongCount(assertion, entries);
  }
}

const READS = new Set(['getInstance', 'getDeployment']);
const CREATES = new Set(['createInstance', 'createVolume', 'createDeployment']);
const DELETES = new Set(['destroyInstance', 'deleteVolume', 'terminateDeployment']);
/** Final statuses, after which polls are not required. */
const FINAL = new Set(['ERROR', 'OFFLINE', 'DESTROYED', 'failed', 'terminated', 'terminated-provider']);

function lives(entries: readonly JournalEntry[]): { id: string; life: JournalEntry[] }[] {
  const found = new Map<string, { id: string; life: JournalEntry[] }>();
  for (const entry of entries) {
    const id = madeBy(entry) ?? entry.resource;
    if (id === undefined) continue;
    const key = `${entry.provider} ${id}`;
    const known = found.get(key);
    if (known === undefined) found.set(key, { id, life: [entry] });
    else known.life.push(entry);
  }
  return [...found.values()];
}

/** The resource that a create made, even if its answer was lost. */
function madeBy({ operation = '', status, resource, server, response }: JournalEntry): string | undefined {
  if (!CREATES.has(operation) || response.headers['idempotent-replayed'] === 'true') return undefined;
  const made = server ?? { status: status ?? 0, resource };
  return made.status >= 200 && made.status < 300 ? made.resource : undefined;
}

const isRead = ({ operation = '' }: JournalEntry): boolean => READS.has(operation);
const isKnownMade = (entry: JournalEntry): boolean =>
  madeBy(entry) !== undefined && entry.status !== null && entry.status < 300;

/** Finds polls that came too late, from the create's answer or the first read until a final status was seen. */
function slowPolls(id: string, life: readonly JournalEntry[], seconds: number, now: number): Breach[] {
  const breaches: Breach[] = [];
  let last: JournalEntry | undefined;
  for (const entry of life) {
    if (last !== undefined && isRead(entry) && secondsBetween(last, entry) > seconds)
      breaches.push({
        message: `${id} was not read for ${secondsBetween(last, entry)} s`,
        entries: [last, entry],
      });
    if (last !== undefined && isEnd(entry)) return breaches;
    if (isKnownMade(entry) || isRead(entry)) last = entry;
  }
  const silence = last === undefined ? 0 : (now - Date.parse(last.at)) / 1000;
  if (last !== undefined && silence > seconds)
    breaches.push({ message: `${id} was not read for ${silence} s, until now`, entries: [last] });
  return breaches;
}

function fastPolls(id: string, life: readonly JournalEntry[], seconds: number): Breach[] {
  const reads = life.filter(isRead);
  return reads.flatMap((entry, index) => {
    const before = reads[index - 1];
    if (before === undefined || secondsBetween(before, entry) >= seconds) return [];
    return {
      message: `${id} was read twice within ${secondsBetween(before, entry)} s`,
      entries: [before, entry],
    };
  });
}

function isEnd({ operation = '', status, response }: JournalEntry): boolean {
  if (status === 404) return true;
  if (DELETES.has(operation) && operation !== 'destroyInstance') return status === 200;
  const shown = (response.body as { status?: unknown } | undefined)?.status;
  return READS.has(operation) && FINAL.has(String(shown));
}

function doubleCreates(entries: readonly JournalEntry[]): Breach[] {
  const made = new Map<string, JournalEntry[]>();
  for (const entry of entries) {
    if (madeBy(entry) === undefined) continue;
    const { name, ...rest } = (entry.request.body ?? {}) as Record<string, unknown>;
    const what = typeof name === 'string' ? name : JSON.stringify(rest);
    const key = [entry.provider, entry.account, entry.operation, what].join(' ');
    made.set(key, [...(made.get(key) ?? []), entry]);
  }
  return [...made.values()].flatMap((same) => {
    const ids = [...new Set(same.map(madeBy))];
    if (ids.length < 2) return [];
    return { message: `the same create made ${ids.join(' and ')}`, entries: same };
  });
}

function leftBehind(id: string, life: readonly JournalEntry[]): Breach[] {
  const made = life.find((entry) => madeBy(entry) !== undefined);
  const isDeleted = life.some(
    ({ operation = '', status }) => DELETES.has(operation) && (status === 200 || status === 404),
  );
  return made === undefined || isDeleted
    ? []
    : [{ message: `${id} was made and not destroyed`, entries: [made] }];
}

function readsOfGone(id: string, life: readonly JournalEntry[]): Breach[] {
  const gone = life.findIndex((entry) => isRead(entry) && entry.status === 404);
  const later = gone < 0 ? [] : life.slice(gone + 1).filter(isRead);
  return later.length === 0
    ? []
    : [{ message: `${id} was read ${later.length} times after it was gone`, entries: later }];
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
    const asked = Number(response.headers['retry-after'] ?? Number.NaN);
    if (Number.isNaN(asked)) waits.delete(key);
    else waits.set(key, { entry, until: Date.parse(entry.at) + asked * 1000, seconds: asked });
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
  const expected =
    least === most
      ? String(least)
      : most === Number.POSITIVE_INFINITY
        ? `at least ${least}`
        : `${least} to ${most}`;
  return [{ message: `${entries.length} requests match, expected ${expected}`, entries }];
}

function outOfOrder(
  filters: readonly z.infer<typeof journalFilterSchema>[] | readonly object[],
  entries: readonly JournalEntry[],
): Breach[] {
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
