import type { InstanceStatus } from '../../../contract/instance.ts';
import type { Actor } from '../../../operators/model.ts';
import { type CordonRecord, type CordonSubject, concerns } from '../../model/cordon.ts';
import type { InstanceRecord } from '../../model/records.ts';
import type { Reader } from '../../model/store.ts';
import type { Work } from '../../model/work.ts';
import { type CordonDeps, type CordonRequest, cordon } from './cordons.ts';

/** The instances left on a subject that is being drained. */
export interface Drained {
  cordon: CordonRecord;
  /** Whether no machine is left, so that work on the subject can begin. */
  isEmpty: boolean;
  byStatus: Partial<Record<InstanceStatus, number>>;
  /** The oldest of the remaining instances. */
  instances: Pick<InstanceRecord, 'id' | 'accountId' | 'status' | 'region' | 'offerId' | 'host'>[];
}

const MAX_LISTED = 200;

/**
 * Cordons the subject and returns what is left there. Tenants' machines are never stopped or moved: the tenants delete
 * them, or an operator does so one by one. A repeated call returns the progress.
 */
export async function drain(deps: CordonDeps, actor: Actor, request: CordonRequest): Promise<Drained> {
  const set = await cordon(deps, actor, request);
  const left = await machinesOf(deps.store.read, set);
  const byStatus: Drained['byStatus'] = {};
  for (const { status } of left) byStatus[status] = (byStatus[status] ?? 0) + 1;
  return {
    cordon: set,
    isEmpty: left.length === 0,
    byStatus,
    instances: left.slice(0, MAX_LISTED).map(({ id, accountId, status, region, offerId, host }) => ({
      id,
      accountId,
      status,
      region,
      offerId,
      host,
    })),
  };
}

/** Instances that may have a machine there, oldest first. */
async function machinesOf(
  { instances, work }: Pick<Reader, 'instances' | 'work'>,
  subject: CordonSubject,
): Promise<InstanceRecord[]> {
  const all = await instances.list(subject.kind === 'region' ? { region: subject.name } : {});
  const there: InstanceRecord[] = [];
  for (const record of all)
    if (isOn(record, subject) && (!hasEnded(record) || hasMachine(await work.of(record.id))))
      there.push(record);
  return there;
}

/** A machine that is being made may be on any host until its row names one. */
function isOn({ region, offerId, platform, host, status }: InstanceRecord, subject: CordonSubject): boolean {
  const isAnywhere = host === null && status === 'PROVISIONING' && subject.kind === 'host';
  return concerns(subject, { region, offer: offerId, platform, host: isAnywhere ? subject.name : host });
}

function hasEnded({ status }: InstanceRecord): boolean {
  return status === 'ERROR' || status === 'OFFLINE';
}

/**
 * Whether an instance that has ended may still have its machine. `release`: the machine is gone, and only its unit is
 * kept.
 */
function hasMachine(work: Work | null): boolean {
  return work !== null && work.kind !== 'release';
}
