import { instancePath, volumePath } from '../contract/paths.ts';
import type { Clock } from '../http/clock.ts';
import type { TargetClient } from '../http/target-client.ts';
import { stringField, stringsField } from '../text/json.ts';
import { isSuccess, successOf } from '../transcript/exchange.ts';
import type { Exchange } from '../transcript/records.ts';
import { type Prospect, prospectOf, prospectOfList } from '../waiting/answers.ts';
import { type KnownReasons, WaitLimiter } from '../waiting/wait-limiter.ts';
import { type Entry, isOpen, type Ledger } from './ledger.ts';
import { findByName, isConfirmedGone, isGone, isLate } from './presence.ts';

export interface CleanUpOptions {
  client: TargetClient;
  ledger: Ledger;
  clock: Clock;
  pollIntervalMs: number;
  /** The time limit for the whole clean-up. */
  patienceMs: number;
  /** Reasons why waits of the run were given up. */
  knownReasons: KnownReasons;
  signal?: AbortSignal;
  /** Called with what the run waits for. */
  onWait?: (entries: readonly Entry[]) => void;
}

/**
 * Destroys every open ledger entry, newest first, and polls until the target confirms that each is gone. Returns the
 * entries that could not be confirmed, each with a note. It touches nothing that is not in the ledger.
 */
export async function cleanUp(parts: CleanUpOptions): Promise<Entry[]> {
  const { ledger, clock, pollIntervalMs, patienceMs, signal } = parts;
  const end = clock.now() + patienceMs;
  const inVain = new Set<Entry>();
  const limiters = new WaitLimiters(parts);
  const rest = (): Entry[] => ledger.open.filter((entry) => !inVain.has(entry));
  try {
    for (let round = 1; rest().length > 0; round++) {
      if (round > 1) parts.onWait?.(rest());
      for (const entries of inBatches(rest())) {
        await Promise.all(
          entries.map(async (entry) => {
            const prospect = await advance(parts, entry, round);
            // An instance that is being destroyed may hold its volumes.
            const isHeld = entry.type === 'volume' && rest().some(({ type }) => type === 'instance');
            if (!isHeld && isOpen(entry) && limiters.isInVain(entry, prospect, clock.now()))
              inVain.add(entry);
          }),
        );
        if (clock.now() >= end) break;
      }
      if (rest().every(cannotBeFound) || clock.now() >= end) break;
      await clock.sleep(Math.min(pollIntervalMs, Math.max(end - clock.now(), 1)), signal);
    }
  } catch (error) {
    if (signal?.aborted !== true) throw error;
  }
  return ledger.open;
}

/** Number of entries that are destroyed concurrently. */
const AT_ONCE = 8;

function inBatches(entries: readonly Entry[]): Entry[][] {
  return Array.from({ length: Math.ceil(entries.length / AT_ONCE) }, (_, batch) =>
    entries.slice(batch * AT_ONCE, (batch + 1) * AT_ONCE),
  );
}

/** Tracks the reads of each entry. */
class WaitLimiters {
  readonly #parts: CleanUpOptions;
  readonly #limiters = new Map<Entry, WaitLimiter>();

  constructor(parts: CleanUpOptions) {
    this.#parts = parts;
  }

  /** Records the last read of an entry. If it can no longer succeed, notes why and returns true. */
  isInVain(entry: Entry, prospect: Prospect, at: number): boolean {
    const limiter = this.#limiters.get(entry) ?? new WaitLimiter(this.#parts.knownReasons);
    this.#limiters.set(entry, limiter);
    const why = limiter.take(prospect, at);
    if (why === undefined) return false;
    this.#parts.ledger.note(entry, [entry.note, why].filter((part) => part !== undefined).join('; '));
    return true;
  }
}

const OPEN: Prospect = { mayFollow: 'yes' };

/** Advances one entry. A failure here must not stop the clean-up of the others. */
async function advance(parts: CleanUpOptions, entry: Entry, round: number): Promise<Prospect> {
  try {
    if (entry.id === undefined) {
      const prospect = await adopt(parts, entry);
      if (entry.id === undefined || !isOpen(entry)) return prospect;
    }
    return entry.type === 'instance'
      ? await removeInstance(parts, entry, entry.id, round)
      : await removeVolume(parts, entry, round);
  } catch (error) {
    if (parts.signal?.aborted === true) throw error;
    parts.ledger.note(entry, `it could not be destroyed: ${error instanceof Error ? error.message : error}`);
    return OPEN;
  }
}

/**
 * Finds an entry without an id by its name. If it is still missing from the list after the longest delay, it was never
 * created.
 */
async function adopt(
  { client, ledger, clock, patienceMs, signal }: CleanUpOptions,
  entry: Entry,
): Promise<Prospect> {
  if (cannotBeFound(entry)) {
    const why = 'the contract has no list of volumes to look for it in';
    if (entry.note?.endsWith(why) !== true) ledger.note(entry, `${entry.note ?? 'no answer came'}; ${why}`);
    return OPEN;
  }
  const found = await findByName(client, ledger, entry, signal);
  if (found.kind === 'found') ledger.made(entry, found.id);
  if (found.kind === 'absent' && isLate(entry, clock.wall(), patienceMs)) ledger.refused(entry);
  if (found.kind !== 'cannot-tell') return OPEN;
  ledger.note(entry, found.why);
  return found.list;
}

/** Whether an entry is a volume without an id: no request can find it, only a person with access to the platform. */
function cannotBeFound({ type, id }: Entry): boolean {
  return type === 'volume' && id === undefined;
}

/** The first round sends DELETE without a read before it; only reads after the DELETE count as confirmation. */
async function removeInstance(
  parts: CleanUpOptions,
  entry: Entry,
  id: string,
  round: number,
): Promise<Prospect> {
  const { client, ledger, signal } = parts;
  const path = instancePath(entry);
  let prospect: Prospect = OPEN;
  if (round > 1) {
    const read = await client.send('cleanup/read-instance', { method: 'GET', path }, signal);
    const list = await client.send('cleanup/list', { method: 'GET', path: '/instances' }, signal);
    if (isConfirmedGone(id, read, list)) {
      ledger.gone(entry);
      return OPEN;
    }
    if (stringField(successOf(read), 'status') === 'DESTROYING') return OPEN;
    prospect = prospectAfter(read, list);
  }
  const asked = await client.send('cleanup/destroy-instance', { method: 'DELETE', path }, signal);
  if (!isSuccess(asked) && asked.answer?.status !== 404) ledger.note(entry, `DELETE ${refusalOf(asked)}`);
  return prospect;
}

/** A read that reports it as gone does not count while the list shows it, or while the list is unreadable. */
function prospectAfter(read: Exchange, list: Exchange): Prospect {
  const prospect = prospectOf(read, { of: 'instance', onTheWay: ['DESTROYING', 'DESTROYED', '404'] });
  if (prospect.mayFollow !== 'yes' || !isGone(read)) return prospect;
  const ofList = prospectOfList(list);
  if (ofList.mayFollow !== 'yes' || !isSuccess(list)) return ofList;
  return { mayFollow: 'never', why: 'GET /instances still lists it as alive' };
}

async function removeVolume(
  { client, ledger, signal }: CleanUpOptions,
  entry: Entry,
  round: number,
): Promise<Prospect> {
  const path = volumePath(entry);
  const read = await client.send('cleanup/read-volume', { method: 'GET', path }, signal);
  if (read.answer?.status === 404 && round > 1) {
    ledger.gone(entry);
    return OPEN;
  }
  const volume = successOf(read);
  if (stringsField(volume, 'attached_instance_ids').length > 0)
    await client.send('cleanup/detach-volume', { method: 'POST', path: `${path}/detach` }, signal);
  const asked = await client.send('cleanup/delete-volume', { method: 'DELETE', path }, signal);
  if (!isSuccess(asked) && asked.answer?.status !== 404) ledger.note(entry, `DELETE ${refusalOf(asked)}`);
  return prospectOf(read, {
    of: 'volume',
    onTheWay: ['CREATING', 'ATTACHING', 'DETACHING', 'DELETING', '404'],
  });
}

function refusalOf(exchange: Awaited<ReturnType<TargetClient['send']>>): string {
  const { answer, failure } = exchange;
  return answer === undefined ? `was not answered: ${failure?.message}` : `was answered ${answer.status}`;
}
