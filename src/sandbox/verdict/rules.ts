import { CREATES, DELETES, READS } from '../journal/assertions.ts';
import type { JournalEntry } from '../journal/entry.ts';
import {
  faultsOf,
  faultsOfCreates,
  faultsOfLeftover,
  faultsOfSilence,
  survival,
  triggeredFaults,
} from './faults.ts';
import {
  type ClientJournal,
  type Finding,
  type Life,
  LONGEST_SILENCE_S,
  type NotTested,
  type Rule,
  toFinding,
} from './rule.ts';

/** One second less than the contract says: timers and networks are not exact. */
const SHORTEST_INTERVAL_S = 9;
const POLLED =
  'O: After provisioning, the client polls `GET /instances/{instanceId}` every 10 to 30 seconds for each active instance and reacts to status changes.';

/** What each client must do, whatever goes wrong. What a fault leads to is judged by the rule of that fault. */
export const rules: readonly Rule[] = [
  {
    id: 'polls-in-time',
    cites: POLLED,
    judges:
      'Until the client learns that an instance has ended, it reads it at most 30 s after the answer before (with 1 s of tolerance), or after the time that Retry-After asked for.',
    judge(journal) {
      const providers = journal.toProviders();
      if (!providers.entries.some(isPolled)) return { notTested: 'the client knew no instance' };
      return providers
        .breaches({ assert: 'polled_at_least_every', seconds: LONGEST_SILENCE_S })
        .filter((breach) => faultsOfSilence(breach, journal).length === 0)
        .map(toFinding);
    },
  },
  {
    id: 'polls-not-too-often',
    cites: POLLED,
    judges:
      'Two answered reads of an instance are at least 10 s apart (with 1 s of tolerance). A read without an answer, or with 401, may be repeated at once.',
    judge(journal) {
      const answered = journal.toProviders().where(({ status }) => status !== null && status !== 401);
      if (!answered.lives.some(({ entries }) => entries.filter(isRead).length > 1))
        return { notTested: 'the client read no instance twice' };
      return answered
        .breaches({ assert: 'polled_at_most_every', seconds: SHORTEST_INTERVAL_S })
        .map(toFinding);
    },
  },
  {
    id: 'stops-at-404',
    cites: 'O: the client treats 404 on a previously known instance as DESTROYED',
    judges:
      'After a read of an instance found 404, the client reads it at most once more, to confirm it. Reads that triggered a fault do not count.',
    judge(journal) {
      const providers = journal.toProviders().where((entry) => faultsOf(entry).length === 0);
      const found = providers.lives.flatMap(({ entries }) => entries.filter(isReadOfGone));
      if (found.length === 0) return { notTested: 'no read of an instance found 404 without a fault' };
      const first = new Set(providers.lives.flatMap(firstOf404));
      return providers
        .where((entry) => !first.has(entry.number))
        .breaches({ assert: 'not_read_when_gone' })
        .map(toFinding);
    },
  },
  {
    id: 'accepts-404-of-delete',
    cites:
      'O: DELETE is idempotent: deleting an already-destroyed instance returns 404 or a terminal `DESTROYED` state; both count as success.',
    judges:
      'After a delete of an instance or a volume was answered 404, the client sends no other delete of it.',
    judge(journal) {
      const { lives } = journal.toProviders();
      const isGone = (entry: JournalEntry): boolean => isDelete(entry) && entry.status === 404;
      if (!lives.some(({ entries }) => entries.some(isGone)))
        return { notTested: 'no delete was answered 404' };
      return lives.flatMap(({ id, entries }) => {
        const later = entries.slice(entries.findIndex(isGone) + 1).filter(isDelete);
        if (!entries.some(isGone) || later.length === 0) return [];
        return { message: `${id} was deleted again after 404`, entries: numbers(later), resource: id };
      });
    },
  },
  {
    id: 'keeps-retry-after',
    cites:
      'M: The rate-limit body is `{ error: string, message: string, retryAfter: number }` (seconds; 900 for a 15-minute window).',
    judges: 'After an answer with Retry-After, the client does not repeat that request before that time.',
    judge(journal) {
      if (!journal.entries.some(({ response }) => 'retry-after' in response.headers))
        return { notTested: 'no answer had Retry-After' };
      return journal.breaches({ assert: 'retry_after_kept' }).map(toFinding);
    },
  },
  {
    id: 'refreshes-token-ahead',
    cites: 'O: `expires_in` (integer seconds; must be included so the client can refresh proactively).',
    judges: 'After the client got a token from a provider, no request fails with 401 because it has expired.',
    judge: judgeTokens,
  },
  {
    id: 'creates-once',
    cites:
      'O: If names must be unique on the platform, the orchestrator de-duplicates (for example by suffixing) instead of failing',
    judges:
      'No two creates of the same name (without a name: the same body) make two resources, unless the first had been deleted or had ended.',
    judge(journal) {
      if (!journal.entries.some(isMade)) return { notTested: 'the client created nothing' };
      return journal
        .breaches({ assert: 'never_created_twice' })
        .filter((breach) => breach.entries.length > 1 && faultsOfCreates(breach).length === 0)
        .map(toFinding);
    },
  },
  {
    id: 'leaves-nothing-running',
    cites: 'O: `STOPPED`: resource still exists, still owned by the deployment, resumable via `/start`.',
    judges:
      'For each resource that the client created, a delete was accepted, or the client learned that it has ended. A stop is not enough.',
    judge(journal) {
      if (!journal.entries.some(isMade)) return { notTested: 'the client created nothing' };
      return journal
        .breaches({ assert: 'all_destroyed' })
        .filter((breach) => faultsOfLeftover(breach, journal).length === 0)
        .map(toFinding);
    },
  },
  {
    id: 'sends-region',
    cites:
      'O: The client always sends `region`; an orchestrator with globally unique instance ids may ignore it.',
    judges:
      'Each read, delete, start and stop of an instance has the query `region`, with the region of the instance.',
    judge(journal) {
      const { lives } = journal.toProviders();
      if (!lives.some(({ entries }) => entries.some(needsRegion)))
        return { notTested: 'the client sent nothing that concerns one instance' };
      return lives.flatMap(wrongRegions);
    },
  },
];

/** The rules that apply to a journal: those of every client, and one for each fault that it triggered. */
export function rulesFor(journal: ClientJournal): Rule[] {
  return [...rules, ...survival(triggeredFaults(journal))];
}

const isRead = ({ operation = '' }: JournalEntry): boolean => READS.has(operation);
const isDelete = ({ operation = '' }: JournalEntry): boolean => DELETES.has(operation);
const isReadOfGone = (entry: JournalEntry): boolean => isRead(entry) && entry.status === 404;
/** Whether from this request on an instance must be polled. */
const isPolled = (entry: JournalEntry): boolean =>
  isRead(entry) || (entry.operation === 'createInstance' && entry.status !== null && entry.status < 300);
const isMade = ({ operation = '', resource, server }: JournalEntry): boolean =>
  CREATES.has(operation) && (resource ?? server?.resource) !== undefined;
const numbers = (entries: readonly JournalEntry[]): number[] => entries.map(({ number }) => number);

/** The reads with 404 that do not follow another one: the client may confirm them. */
function firstOf404({ entries }: Life): number[] {
  const reads = entries.filter(isRead);
  return numbers(reads.filter((read, index) => read.status === 404 && reads[index - 1]?.status !== 404));
}

const WITH_REGION = new Set(['getInstance', 'destroyInstance', 'startInstance', 'stopInstance']);
const needsRegion = ({ operation = '' }: JournalEntry): boolean => WITH_REGION.has(operation);
const regionSent = ({ path }: JournalEntry): string | null =>
  new URLSearchParams(path.split('?')[1]).get('region');

function wrongRegions({ id, entries }: Life): Finding[] {
  const { region } = (entries.find(({ operation }) => operation === 'createInstance')?.request.body ??
    {}) as { region?: unknown };
  const wrong = entries.filter((entry) => {
    const sent = regionSent(entry);
    return needsRegion(entry) && (!sent || (typeof region === 'string' && sent !== region));
  });
  if (wrong.length === 0) return [];
  const [first] = wrong.map(regionSent);
  const how = first ? `had the region ${first}, not ${region}` : 'had no region';
  return [{ message: `${wrong.length} requests for ${id} ${how}`, entries: numbers(wrong), resource: id }];
}

function judgeTokens(journal: ClientJournal): Finding[] | NotTested {
  /** The current token's expiry, by the provider and the account. */
  const expiries = new Map<string, number>();
  const findings: Finding[] = [];
  let isNeeded = false;
  for (const entry of journal.toProviders().entries) {
    const { provider, account, operation, status, response, server, number, method, path } = entry;
    const key = `${provider} ${account}`;
    const expiry = expiries.get(key);
    const isExpired = expiry !== undefined && Date.parse(entry.at) >= expiry;
    if (operation === 'issueToken') {
      const { expires_in: seconds } = (response.body ?? {}) as { expires_in?: unknown };
      if (status === 200 && typeof seconds === 'number') {
        isNeeded ||= expiry !== undefined;
        expiries.set(key, Date.parse(entry.at) + seconds * 1000);
      }
    } else if (isExpired) {
      isNeeded = true;
      if ((server?.status ?? status) === 401)
        findings.push({ message: `${method} ${path} was sent with an expired token`, entries: [number] });
    }
  }
  if (expiries.size === 0) return { notTested: 'the client asked for no token' };
  return isNeeded ? findings : { notTested: 'no token expired while the client sent requests' };
}
