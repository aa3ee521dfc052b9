import type { Pruned } from '../../../src/orchestrator/model/attempt.ts';
import type { VolumeRecord } from '../../../src/orchestrator/model/records.ts';
import { type Store, StoreUnavailable, type Transaction } from '../../../src/orchestrator/model/store.ts';
import type { Lease } from '../../../src/orchestrator/model/work.ts';
import { BEYOND_CAPACITY } from '../../../src/orchestrator/reconciliation/adopt-machine.ts';
import type { Chance } from '../../kernel/chance.ts';
import { interceptMethods } from '../../kernel/intercept-methods.ts';
import type { ServerProcess } from '../../kernel/process.ts';
import type { StoreTrouble } from '../scenario.ts';
import type { CommitFeed } from './commit-feed.ts';
import type { Database } from './database.ts';

/** A unit that a server sold: how many are claimed with it. */
export interface Sold {
  offerId: string;
  region: string;
  claimed: number;
}

/** Who is told of what is committed. */
export interface StoreObserver {
  claimed(process: ServerProcess, leases: readonly Lease[]): void;
  /** A transaction has checked a lease; `hasWritten`: it also wrote a row. */
  checked(process: ServerProcess, lease: Lease, hasWritten: boolean): void;
  volumeWritten(volume: VolumeRecord): void;
  /** The tombstones of these instances and volumes were deleted. */
  pruned(ids: readonly string[]): void;
  /** A unit was taken that is there to be sold. */
  sold(process: ServerProcess, sold: Sold): void;
  /** A call to the store failed. */
  storeFailed(process: ServerProcess): void;
  /** A transaction may have claimed or released units or storage. */
  claimsWritten(): void;
}

export interface FacadeParts {
  database: Database;
  feed: CommitFeed;
  process: ServerProcess;
  isShared: boolean;
  chance: Chance;
  trouble: () => StoreTrouble;
  /** Ends the process now. */
  die: () => void;
  observer: StoreObserver;
}

const WRITES = new Set(['insert', 'update', 'putAttachment', 'removeAttachment', 'take', 'put', 'finish']);

/** The shared database as one process of a replica uses it: with faults. */
export function replicaStore(parts: FacadeParts): Store {
  const { database, feed, process, isShared, observer } = parts;
  const ask = <T>(question: () => Promise<T>): Promise<T> =>
    process.reach(async () => {
      fail(parts, 'unavailable');
      return question();
    });
  return {
    isShared,
    isCommitFeedLive: () => feed.isCurrent(),
    read: interceptMethods(database.store.read, (_part, _name, call) => ask(call)),
    transact: (body) => ask(() => transact(parts, body)),
    claimWork: (claim) =>
      ask(async () => {
        const claimed = await process.orDeath(() => database.claimWork(claim));
        observer.claimed(process, claimed);
        fail(parts, 'unknownOutcome');
        return claimed;
      }),
    nextWorkAt: (platform) => ask(() => database.nextWorkAt(platform)),
    takeOverWork: (now) => ask(async () => (isShared ? undefined : database.takeOverWork(now))),
    proveWrites: () => ask(async () => undefined),
    subscribe: (listener) => feed.subscribe(listener),
    close: async () => undefined,
  };
}

function fail({ chance, trouble, observer, process }: FacadeParts, kind: keyof StoreTrouble): void {
  if (!chance.happens(trouble()[kind])) return;
  observer.storeFailed(process);
  throw new StoreUnavailable(`simulated: ${kind}`);
}

async function transact<T>(parts: FacadeParts, body: (tx: Transaction) => Promise<T>): Promise<T> {
  const { database, process, observer } = parts;
  const seen: Seen = {
    checks: [],
    volumes: [],
    sold: [],
    pruned: [],
    hasWritten: false,
    hasWrittenWork: false,
    hasClaimed: false,
  };
  const result = await database
    .transact((tx) => {
      database.writer = process;
      return process.orDeath(async () => {
        const outcome = await body(recorded(parts, tx, seen));
        fail(parts, 'unavailable');
        return outcome;
      });
    })
    .finally(() => seen.hasWrittenWork && database.workWritten());
  if (seen.hasClaimed) observer.claimsWritten();
  for (const lease of seen.checks) observer.checked(process, lease, seen.hasWritten);
  for (const sold of seen.sold) observer.sold(process, sold);
  for (const volume of seen.volumes) observer.volumeWritten(volume);
  observer.pruned(seen.pruned);
  fail(parts, 'unknownOutcome');
  return result;
}

interface Seen {
  checks: Lease[];
  volumes: VolumeRecord[];
  sold: Sold[];
  pruned: string[];
  hasWritten: boolean;
  hasWrittenWork: boolean;
  hasClaimed: boolean;
}

/** The same transaction, but what it does is noted, and the process may die at each of its calls. */
function recorded(parts: FacadeParts, tx: Transaction, seen: Seen): Transaction {
  const { process, chance, trouble, die } = parts;
  return interceptMethods(tx, (part, name, call, args) => {
    if (chance.happens(trouble().death)) die();
    if (process.isDead) return new Promise(() => undefined);
    note(seen, part, name, args);
    if (part === 'claims' && name === 'take') return noteSold(seen, tx, call, args[0] as Claim);
    return name === 'prune' && part !== 'attempts' ? notePruned(seen, call) : call();
  });
}

function note(seen: Seen, part: string, name: string, args: readonly unknown[]): void {
  if (part === 'work' && name === 'check') seen.checks.push(args[0] as Lease);
  if (part === 'volumes' && (name === 'insert' || name === 'update'))
    seen.volumes.push(args[0] as VolumeRecord);
  if (WRITES.has(name)) seen.hasWritten = true;
  if (part === 'work' && name !== 'of' && name !== 'check') seen.hasWrittenWork = true;
  if (part === 'claims' || part === 'storageClaims') seen.hasClaimed = true;
}

type Claim = Parameters<Transaction['claims']['take']>[0];

/** What is taken whatever there is, is a machine's that was found, and no sale. */
async function noteSold(
  seen: Seen,
  { claims }: Transaction,
  call: () => Promise<unknown>,
  { instanceId, offerId, region, capacity }: Claim,
): Promise<unknown> {
  const isNew = capacity < BEYOND_CAPACITY && !(await claims.isHeldBy(instanceId));
  const isTaken = await call();
  if (!isNew || isTaken !== true) return isTaken;
  const use = await claims.use();
  const claimed = use.find((entry) => entry.offerId === offerId && entry.region === region)?.claimed ?? 0;
  seen.sold.push({ offerId, region, claimed });
  return isTaken;
}

async function notePruned(seen: Seen, call: () => unknown): Promise<Pruned> {
  const pruned = (await call()) as Pruned;
  seen.pruned.push(...pruned.ids);
  return pruned;
}
