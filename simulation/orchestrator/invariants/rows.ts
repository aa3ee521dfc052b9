import { type InstanceStatus, instanceTransitions } from '../../../src/contract/instance.ts';
import { canTransition } from '../../../src/contract/transitions.ts';
import { toInstance } from '../../../src/orchestrator/instances/transition.ts';
import { tenantTexts } from '../../../src/orchestrator/model/failure.ts';
import type { InstanceRecord } from '../../../src/orchestrator/model/records.ts';
import { hold } from '../../kernel/violation.ts';
import type { Proof } from '../platform/ssh.ts';

/** One write of a row. */
export interface Written {
  before: InstanceRecord | undefined;
  after: InstanceRecord;
}

/** I5: a write follows the table of transitions; one commit may hold two of them. */
export function followsTheTable({ before, after }: Written): void {
  if (before === undefined) {
    hold('I5', after.status === 'PROVISIONING', () => `${after.id} began as ${after.status}`, [after.id]);
    return;
  }
  if (before.status === after.status) return;
  const isLegal =
    canTransition(instanceTransitions, before.status, after.status) ||
    instanceTransitions[before.status].some((between) =>
      canTransition(instanceTransitions, between, after.status),
    );
  hold('I5', isLegal, () => `${after.id} went from ${before.status} to ${after.status}`, [after.id]);
}

/** I6: ONLINE is written only after a login to the machine at the row's address with each of its keys. */
export function onlineIsEarned(
  { before, after }: Written,
  proof: Proof | undefined,
  { now, withinMs }: { now: number; withinMs: number },
): void {
  if (after.status !== 'ONLINE' || before?.status === 'ONLINE') return;
  const words = [after.id];
  hold('I6', proof !== undefined, () => `${after.id} is ONLINE and was never reached by SSH`, words);
  hold(
    'I6',
    now - proof.at <= withinMs,
    () => `${after.id} is ONLINE by a proof ${now - proof.at} ms old`,
    words,
  );
  hold(
    'I6',
    proof.host === after.endpoint?.publicIp,
    () => `${after.id} was reached at ${proof.host}`,
    words,
  );
  const missing = after.spec.sshKeys.filter((key) => !proof.keys.includes(key));
  hold('I6', missing.length === 0, () => `${after.id} is ONLINE without a proof of each key`, words);
}

const KNOWN_TEXTS = new Set<string | null>(Object.values(tenantTexts));

/** I7: an ERROR has a text, which is one of Berth's own: nothing that the platform says. */
export function errorSaysWhy({ after }: Written): void {
  const isKnown = after.status !== 'ERROR' || KNOWN_TEXTS.has(after.error);
  hold('I7', isKnown, () => `${after.id} is ERROR with the text ${after.error}`, [after.id]);
}

/** I16: time never goes back, and `updated_at` moves only with what a client sees. */
export function timeGoesOn({ before, after }: Written): void {
  const words = [after.id];
  hold(
    'I16',
    after.updatedAt >= after.createdAt,
    () => `${after.id} was updated before it was created`,
    words,
  );
  if (before === undefined) return;
  hold('I16', after.version > before.version, () => `${after.id} has version ${after.version} twice`, words);
  hold('I16', after.updatedAt >= before.updatedAt, () => `updated_at of ${after.id} went back`, words);
  if (after.updatedAt === before.updatedAt) return;
  const seen = (record: InstanceRecord): string => JSON.stringify({ ...toInstance(record), updated_at: '' });
  hold('I16', seen(before) !== seen(after), () => `updated_at of ${after.id} moved, and nothing else`, words);
}

/** What is true of an instance's machine when its row is written. */
export interface Truth {
  machines: readonly { power: string }[];
  /** The host of one of these, where it does not answer. */
  silentHost?: string | undefined;
  /** Whether one of its machines was ever lost, reaped, reclaimed or broke down. */
  hasSuffered: boolean;
  /** Whether its tenant ever sent a DELETE. */
  isDeleteSent: boolean;
  /** Whether its create had time left; false where clocks were changed, because then nobody can tell. */
  isEarly: boolean;
}

/**
 * I35: no instance is concluded gone while a machine of it is on a host that does not answer, or is not asked: silence proves
 * nothing.
 */
export function silenceProvesNothing(written: Written, truth: Truth): void {
  const { before, after } = written;
  if (before === undefined || before.status === after.status) return;
  if (after.status !== 'DESTROYED' && !endsByPlatform(before.status, after, truth)) return;
  const host = truth.silentHost;
  hold(
    'I35',
    host === undefined,
    () => `${after.id} went from ${before.status} to ${after.status}, and its machine is on ${host}`,
    [after.id, after.ownerRef, host ?? ''],
  );
}

/** I3: the platform ends an instance only if its machine is truly lost, never by a false or unclear answer. */
export function endIsTrue({ before, after }: Written, truth: Truth): void {
  if (before === undefined || before.status === after.status) return;
  if (!endsByPlatform(before.status, after, truth)) return;
  const isLost = !truth.machines.some(({ power }) => power !== 'destroying' && power !== 'failed');
  hold(
    'I3',
    isLost,
    () =>
      `${after.id} went from ${before.status} to ${after.status} (${after.error}), and its machine is there`,
    [after.id, after.ownerRef],
  );
  hold(
    'I3',
    truth.hasSuffered || before.status === 'PROVISIONING',
    () => `${after.id} was ended for a loss that never was`,
    [after.id, after.ownerRef],
  );
}

const ON_ITS_WAY = new Set<string>(['building', 'running']);

/** I3: a create is not given up before its time while its machine is being built or runs. */
export function createIsNotGivenUp({ before, after }: Written, { machines, isEarly }: Truth): void {
  if (before?.status !== 'PROVISIONING' || after.status !== 'ERROR' || !isEarly) return;
  const own = machines.find(({ power }) => ON_ITS_WAY.has(power));
  hold(
    'I3',
    own === undefined,
    () => `${after.id} is ERROR (${after.error}), and its machine is ${own?.power}`,
    [...[after.id, after.ownerRef]],
  );
}

function endsByPlatform(before: InstanceStatus, { status, error }: InstanceRecord, truth: Truth): boolean {
  switch (status) {
    case 'OFFLINE':
      return true;
    case 'DESTROYING':
      return !truth.isDeleteSent;
    case 'ERROR':
      return before === 'PROVISIONING' ? error === tenantTexts.machine_gone : true;
    default:
      return false;
  }
}

/** Of what ended by itself the machine is stopped, and removed later. */
const SWITCHED_OFF = new Set<string>(['stopped', 'failed']);

/** I12: DESTROYED is written only when nothing of the machine is left but disks that are kept for a time. */
export function destroyedIsProved({ before, after }: Written, machines: readonly { power: string }[]): void {
  if (after.status !== 'DESTROYED' || before?.status === 'DESTROYED') return;
  const isKept = after.destroyOrder?.keepsDisks === true;
  hold(
    'I12',
    machines.every(({ power }) => isKept && SWITCHED_OFF.has(power)),
    () => `${after.id} is DESTROYED and its machine is ${machines[0]?.power}`,
    [after.id, after.ownerRef],
  );
}

/** I9: what was committed survives a power cut. */
export function nothingIsForgotten(
  { id, version, status }: Pick<InstanceRecord, 'id' | 'version' | 'status'>,
  found: Pick<InstanceRecord, 'version' | 'status'> | null,
): void {
  const isThere = found !== null && found.version === version;
  hold('I9', isThere, () => `${id} was ${status}, and is ${found?.status ?? 'not there'} after a power cut`, [
    id,
  ]);
}
