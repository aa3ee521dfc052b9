import type { Clock } from '../http/clock.ts';
import { identityOf } from '../http/plain-identity.ts';
import { type SignIn, tokenRequests } from '../http/sign-in.ts';
import { paceOf, TargetClient } from '../http/target-client.ts';
import type { Transport } from '../http/transport.ts';
import { isSuccess, statusOf } from '../transcript/exchange.ts';
import type { Exchange } from '../transcript/records.ts';
import { Transcript } from '../transcript/transcript.ts';
import { cleanUp } from './clean-up.ts';
import { type Entry, isOpen, keyFingerprintOf, Ledger } from './ledger.ts';
import { readLedger, reopenLedgerFile, type StoredLedger } from './ledger-file.ts';
import { adoptOrphans } from './presence.ts';
import { isPresumedAlive, lock } from './sweep-lock.ts';

export interface SweepParts extends SignIn {
  transport: Transport;
  clock: Clock;
  pollIntervalMs: number;
  /** The time limit for cleaning up one run. */
  patienceMs: number;
  signal: AbortSignal;
  /** Names of entries that a person has searched for on the platform and not found. */
  absent: readonly string[];
  /** Accepts a key other than the run's that belongs to the same account. */
  isOtherKeyAccepted?: boolean;
  /** The caller holds the folder of the ledgers: neither the run nor another sweep can be under way. */
  isFolderHeld?: boolean;
  onWait: (text: string) => void;
}

export type Swept =
  | { result: 'swept'; destroyed: Entry[]; left: Entry[] }
  /** The run is still alive, or another sweep is in progress. */
  | { result: 'busy'; why: string }
  /** The target could not be asked, or its answer cannot be trusted. */
  | { result: 'unreachable'; why: string; left: Entry[] };

/**
 * Finishes the clean-up of one run. It destroys resources whose id is in the ledger and instances with a name
 * of the run, and nothing else. It may be interrupted and repeated at any point.
 */
export async function sweep(stored: StoredLedger, parts: SweepParts): Promise<Swept> {
  const { process: owner } = stored;
  const isHeld = parts.isFolderHeld === true;
  if (!isHeld && owner !== undefined && isPresumedAlive(owner, stored.touchedAt))
    return { result: 'busy', why: `the run still goes on: process ${owner.pid} on ${owner.host}` };
  if (!isKeyOfRun(stored, parts))
    return { result: 'unreachable', why: keyMismatchMessage(parts), left: openEntries(stored) };
  using held = isHeld ? undefined : lock(stored.path);
  if (!isHeld && held === undefined) return { result: 'busy', why: 'another sweep is in progress' };
  // Another sweep may have finished before this one got the lock.
  const entries = readLedger(stored.path)?.entries ?? stored.entries;
  const file = reopenLedgerFile(stored.path);
  try {
    const { runId, plain } = stored;
    const names = identityOf(runId, plain);
    const ledger = new Ledger({ file, runId, names, wall: () => parts.clock.wall() }, entries);
    return await sweepLedger(stored, ledger, parts);
  } finally {
    file.close();
  }
}

/**
 * Whether the key belongs to the run's account. Another account sees none of the run's resources, as if all were gone.
 */
function isKeyOfRun({ runId, keyPrint }: StoredLedger, parts: SweepParts): boolean {
  return (
    parts.isOtherKeyAccepted === true || keyPrint === undefined || keyPrint === keyFingerprintOf(runId, parts)
  );
}

function keyMismatchMessage({ apiKey }: SignIn): string {
  const which = apiKey === undefined ? 'user name' : 'API key';
  return `left alone: the ${which} is not that of the run, and another account would not be shown what the run made. Sign in as the run did or, where the ${which} is of the same account, pass --other-key (of a monitor: accepts_other_key)`;
}

async function sweepLedger(stored: StoredLedger, ledger: Ledger, parts: SweepParts): Promise<Swept> {
  const client = createWire(stored, parts);
  for (const entry of ledger.open) if (parts.absent.includes(entry.name)) ledger.refused(entry);
  if (ledger.open.length === 0 && stored.unreadable.length === 0) {
    ledger.close();
    return { result: 'swept', destroyed: [], left: [] };
  }
  const list = await listWith(client, parts);
  if (!isSuccess(list)) return { result: 'unreachable', why: whyUnreachable(list, parts), left: ledger.open };
  adoptOrphans(ledger, list);
  const before = ledger.open;
  const left = await cleanUp({
    client,
    ledger,
    clock: parts.clock,
    pollIntervalMs: parts.pollIntervalMs,
    patienceMs: parts.patienceMs,
    knownReasons: new Set(),
    signal: parts.signal,
    onWait: (waiting) => parts.onWait(`until ${waiting.map(({ name }) => name).join(', ')} is gone`),
  });
  if (left.length === 0) ledger.close();
  return { result: 'swept', destroyed: before.filter((entry) => entry.state === 'gone'), left };
}

/** Lists the instances with the API key or, if that is refused, with an access token. */
async function listWith(client: TargetClient, { signal, ...signIn }: SweepParts): Promise<Exchange> {
  const read = { method: 'GET', path: '/instances' } as const;
  const list = await client.send('sweep/list', read, signal);
  if (![401, 403].includes(statusOf(list) ?? 0)) return list;
  for (const request of tokenRequests(signIn)) {
    await client.requestAccessToken('sweep/token', request, signal);
    if (!client.hasAccessToken) continue;
    client.preferAccessToken();
    return client.send('sweep/list', read, signal);
  }
  return list;
}

function createWire(
  stored: StoredLedger,
  { transport, clock, apiKey, login, pollIntervalMs }: SweepParts,
): TargetClient {
  return new TargetClient({
    transport,
    clock,
    apiKey,
    login,
    baseUrl: stored.baseUrl,
    transcript: new Transcript({ redact: (record) => record }),
    identity: identityOf(stored.runId, stored.plain, 'sweep'),
    paceMs: paceOf(pollIntervalMs),
    onSecret: () => {},
  });
}

function whyUnreachable({ answer, failure }: Exchange, { apiKey }: SignIn): string {
  if (answer === undefined) return failure?.message ?? 'no answer came';
  if (answer.status === 401 || answer.status === 403)
    return `the ${apiKey === undefined ? 'login' : 'API key'} was refused (GET /instances was answered ${answer.status})`;
  return `GET /instances was answered ${answer.status}`;
}

/** The open entries of a ledger. */
export function openEntries({ entries }: StoredLedger): Entry[] {
  return entries.filter(isOpen);
}
