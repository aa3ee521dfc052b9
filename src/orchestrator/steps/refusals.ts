import { outOfPlacement, takeTrial } from '../capacity/cordons.ts';
import { type CordonRecord, isSame, isTrialDue, type Refusals } from '../model/cordon.ts';
import { markOf } from '../model/marks.ts';
import { cleanText } from '../model/platform-resource.ts';
import type { InstanceRecord } from '../model/records.ts';
import type { Transaction } from '../model/store.ts';
import type { Lease } from '../model/work.ts';
import type { Recording } from '../platform/context.ts';
import { describeFailure, type Failed } from './fail.ts';

/** So many creates in a row must be refused alike, each of another instance. */
const IN_A_ROW = 3;
const FIRST_BACKOFF_MS = 5 * 60_000;
const LONGEST_BACKOFF_MS = 60 * 60_000;
/** The longest reason in a row and in an alarm. */
const REASON_LENGTH = 500;

/**
 * The codes that may be due to the host. All others are due to the request, the configuration, a quota or the
 * connection, so no tenant can take a host out of placement with its requests.
 */
const OF_HOST: ReadonlySet<Failed['code']> = new Set([
  'capacity',
  'unfinished',
  'boot_failed',
  'device_fault',
  'internal',
]);

/** Whether the failure may be due to the host. A host that is full says so before it begins: the next count has that. */
export function isOfHost({ code, sideEffect }: Failed, { cookie }: Pick<Lease, 'cookie'>): boolean {
  return OF_HOST.has(code) && !(code === 'capacity' && sideEffect === 'none' && cookie === null);
}

/** The words of a failure that are the same for each instance: words with digits, such as ids and sizes, are left out. */
function causeOf(failed: Failed): string {
  return cleanText(describeFailure(failed))
    .replaceAll(/\S*\d\S*/g, '#')
    .slice(0, REASON_LENGTH);
}

/** The host that refused. The offer, if neither the row nor the platform says which host it was. */
function subjectOf({ host, offerId, platform }: InstanceRecord, failed: Failed) {
  const name = host ?? failed.host;
  return name === undefined
    ? ({ kind: 'offer', name: offerId, platform } as const)
    : ({ kind: 'host', name, platform } as const);
}

/** Counts a create that a host refused. The third one alike in a row takes the host out of placement. */
export async function countRefusal(
  { clock, health, platform, random }: Recording,
  tx: Transaction,
  lease: Lease,
  record: InstanceRecord,
  failed: Failed,
): Promise<void> {
  // An outage of the platform since the create was due has interrupted it.
  const wasInterrupted = failed.code === 'unfinished' && lease.waitsSince < health.trustedSince;
  if (wasInterrupted || !isOfHost(failed, lease)) return;
  const subject = subjectOf(record, failed);
  await tx.marks.get(markOf(platform, 'placing'));
  const known = (await tx.cordons.list()).find((one) => one.refusals !== null && isSame(one, subject));
  const now = clock.now();
  const refusals = addRefusal(known?.refusals ?? null, causeOf(failed), record.id, now);
  if (refusals === known?.refusals) return;
  if (known !== undefined) await tx.cordons.remove(known.id);
  const { id = `cordon-${random.bytes(6).toString('hex')}`, since = now } = known ?? {};
  const reason = `it refuses creates: ${cleanText(describeFailure(failed)).slice(0, REASON_LENGTH)}`;
  const cordon = { ...subject, id, since, until: null, isMaintenance: false, by: 'berth' };
  await tx.cordons.insert({ ...cordon, reason, refusals });
}

function addRefusal(known: Refusals | null, cause: string, instanceId: string, now: number): Refusals {
  if (known !== null && known.outAt !== null) {
    // Only a trial was placed there since. Other creates began before.
    if (known.trial !== instanceId) return known;
    const backoffMs = Math.min(2 * known.backoffMs, LONGEST_BACKOFF_MS);
    return { ...known, cause, trial: null, backoffMs, trialAt: now + backoffMs };
  }
  const before = known?.cause === cause ? known.instances : [];
  if (known !== null && before.includes(instanceId)) return known;
  const instances = [...before, instanceId];
  const outAt = instances.length < IN_A_ROW ? null : now;
  return {
    cause,
    instances,
    outAt,
    trialAt: now + FIRST_BACKOFF_MS,
    backoffMs: FIRST_BACKOFF_MS,
    trial: null,
  };
}

/** Forgets the refusals of a host and of an offer after a create that succeeded there. */
export async function endRefusals(
  { platform, log }: Recording,
  tx: Transaction,
  { offerId }: InstanceRecord,
  host: string | undefined,
): Promise<void> {
  const subjects = [
    { kind: 'offer', name: offerId, platform } as const,
    ...(host === undefined ? [] : [{ kind: 'host', name: host, platform } as const]),
  ];
  for (const one of await tx.cordons.list()) {
    if (one.refusals === null || !subjects.some((subject) => isSame(one, subject))) continue;
    await tx.cordons.remove(one.id);
    if (one.refusals.outAt !== null)
      log.info({ [one.kind]: one.name }, 'a create succeeded there: it is in placement again');
  }
}

/** Makes an instance the trial on each host on which one is due, for a platform that chooses the host itself. */
export async function takeTrials({ store, clock, platform }: Recording, instanceId: string): Promise<void> {
  const now = clock.now();
  const due = (await outOfPlacement(store.read, platform)).filter(
    (one) => one.kind === 'host' && isTrialDue(one, now),
  );
  for (const { name } of due)
    await store.transact((tx) => takeTrial(tx, { kind: 'host', name, platform }, instanceId, now));
}

const REFUSED =
  'creates were refused alike three times in a row: nothing is placed there, except one create from time to time as a ' +
  'trial. Find the cause there; a trial that succeeds ends this, or `berth uncordon`';

/** Raises an alarm for each host and offer that is out of placement, and ends all others. Never rejects. */
export async function reportRefusals({ store, platform, alarms, log }: Recording): Promise<void> {
  try {
    const out = await outOfPlacement(store.read, platform);
    for (const cordon of out) {
      const fields = { [cordon.kind]: cordon.name, reason: cordon.reason };
      const alarm = { kind: 'creates_refused', subject: toSubject(cordon), platform, text: REFUSED } as const;
      alarms.raise({ ...alarm, detail: describeRefusals(cordon), fields }, log);
    }
    alarms.endOthers('creates_refused', platform, new Set(out.map(toSubject)));
  } catch (error) {
    log.error({ err: error }, 'the hosts that refuse creates could not be read');
  }
}

const toSubject = ({ platform, name }: CordonRecord): string => `${platform}/${name}`;

function describeRefusals({ kind, name, reason, refusals }: CordonRecord): string {
  const next = new Date(refusals?.trialAt ?? 0).toISOString();
  return `the ${kind} ${name}: ${reason}; next trial from ${next}`;
}
