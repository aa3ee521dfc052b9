import { type FaultName, faultCatalog, faultNames } from '../faults/catalog/catalog.ts';
import { type Breach, CREATES, isEnd, silenceUntil } from '../journal/assertions.ts';
import type { JournalEntry } from '../journal/entry.ts';
import {
  type ClientJournal,
  type Finding,
  LONGEST_SILENCE_S,
  type NotTested,
  type Rule,
  resourceOf,
  toFinding,
} from './rule.ts';

/** The faults between client and server. Other faults show in statuses, which the other rules judge. */
export const requestFaults: readonly FaultName[] = faultNames.filter((name) =>
  ['connection', 'answer', 'status'].includes(faultCatalog[name].layer),
);

/** The faults that an entry triggered. */
export const faultsOf = ({ faults }: JournalEntry): FaultName[] =>
  faults === undefined ? [] : requestFaults.filter((name) => faults.includes(name));

export const triggeredFaults = ({ entries }: ClientJournal): FaultName[] =>
  requestFaults.filter((name) => entries.some(({ faults }) => faults?.includes(name)));

const CITES =
  'O: The client learns of changes only by polling `GET /instances/{instanceId}` (and the volume and offer endpoints).';
const JUDGES = [
  'After the fault, (1) each active instance is read within 30 s, or after the time that Retry-After asked for;',
  '(2) nothing that was made is created again;',
  '(3) if the affected request got no success, its resource is asked about again, or is known to have ended;',
  '(4) if it was a create that made nothing, another create follows, unless it was refused (4xx, but not 401, 408 or 429);',
  '(5) if it had no resource, another request follows.',
].join(' ');

/** One rule for each fault. Without a fault, one that is not tested. */
export function survival(faults: readonly FaultName[]): Rule[] {
  const none: Rule = {
    id: 'survives-faults',
    cites: CITES,
    judges: JUDGES,
    judge: () => ({ notTested: 'no request of the client triggered a fault' }),
  };
  if (faults.length === 0) return [none];
  return faults.map((fault) => ({
    ...none,
    id: `survives-${fault}`,
    judge: (journal) => judgeSurvival(fault, journal),
  }));
}

function judgeSurvival(fault: FaultName, journal: ClientJournal): Finding[] | NotTested {
  const of = (faults: readonly FaultName[]): boolean => faults.includes(fault);
  const breaches = [
    ...journal
      .toProviders()
      .breaches({ assert: 'polled_at_least_every', seconds: LONGEST_SILENCE_S })
      .filter((breach) => of(faultsOfSilence(breach, journal))),
    ...journal.breaches({ assert: 'never_created_twice' }).filter((breach) => of(faultsOfCreates(breach))),
  ];
  const leftovers = journal
    .breaches({ assert: 'all_destroyed' })
    .filter((breach) => of(faultsOfLeftover(breach, journal)) && breach.entries.every(isThrough));
  const affected = journal.entries.filter((entry) => of(faultsOf(entry)));
  const open = affected.filter((entry) => !isContinued(entry, journal));
  const isOver = (entry: JournalEntry): boolean => silenceUntil(journal.now, entry) > LONGEST_SILENCE_S;
  const found = [...breaches, ...leftovers];
  const isFound = (entry: JournalEntry): boolean => found.some(({ entries }) => entries.includes(entry));
  const givenUp = open.filter((entry) => isOver(entry) && !isFound(entry)).map(notContinued);
  const findings = [...found, ...givenUp].map(toFinding);
  if (findings.length > 0 || open.length === 0) return findings;
  return { notTested: `less than ${LONGEST_SILENCE_S} s have passed since the fault triggered` };
}

function notContinued(entry: JournalEntry): Breach {
  const { method, path, status } = entry;
  const resource = resourceOf(entry);
  const request = `${method} ${path} ${status === null ? 'got no answer' : `was answered ${status}`}`;
  if (resource === undefined) return { message: `${request}, and was not sent again`, entries: [entry] };
  const message = `${request}, and the client asked nothing more about ${resource}`;
  return { message, resource, entries: [entry] };
}

/** Whether nothing more is expected of the client after an affected request, or it came. */
function isContinued(entry: JournalEntry, { entries, lives }: ClientJournal): boolean {
  const { operation = '', provider, status } = entry;
  if (isThrough(entry)) return true;
  const resource = resourceOf(entry);
  if (resource !== undefined) {
    if (isEnd(entry)) return true;
    const life = lives.find(({ id, entries: [first] }) => id === resource && first?.provider === provider);
    return life?.entries.some(({ number }) => number > entry.number) === true;
  }
  // A create may be refused: the client may do without, or choose another offer.
  if (!CREATES.has(operation)) return entries.some(({ number }) => number > entry.number);
  const isRefused = status !== null && status >= 400 && status < 500 && ![401, 408, 429].includes(status);
  return isRefused || entries.some((later) => later.number > entry.number && later.operation === operation);
}

/** Whether the client got a success that it can read, for a create with the id of what was made. */
function isThrough({ operation = '', status, resource, response, server }: JournalEntry): boolean {
  if (status === null || status < 200 || status > 299 || response.problem !== undefined) return false;
  if (status !== 204 && (typeof response.body !== 'object' || response.body === null)) return false;
  return !CREATES.has(operation) || resource === (server?.resource ?? resource);
}

/**
 * The faults that triggered in a silence: its first request, or a request meanwhile about that resource or about none. The
 * request that ends it does not count.
 */
export function faultsOfSilence({ resource, entries }: Breach, journal: ClientJournal): FaultName[] {
  const [first, end] = entries;
  const from = first?.number ?? 0;
  const until = end?.number ?? Number.POSITIVE_INFINITY;
  const within = journal.entries.filter(
    (entry) =>
      [undefined, resource].includes(resourceOf(entry)) &&
      entry.provider === first?.provider &&
      from <= entry.number &&
      entry.number < until,
  );
  return within.flatMap(faultsOf);
}

/** The faults after which something was created again. */
export const faultsOfCreates = ({ entries }: Breach): FaultName[] => entries.slice(0, -1).flatMap(faultsOf);

/** The faults because of which the client never learned what it had created. */
export function faultsOfLeftover(
  { resource, entries: [made] }: Breach,
  { lives }: ClientJournal,
): FaultName[] {
  const life = lives.find(({ id }) => id === resource);
  const isUnknown = made?.resource !== resource && life?.entries.length === 1;
  return made !== undefined && isUnknown ? faultsOf(made) : [];
}
