import { activeStatuses } from '../../../src/marketplace/contract/deployment.ts';
import type { DeploymentRecord } from '../../../src/marketplace/model/deployment-record.ts';
import type { VolumeRecord } from '../../../src/marketplace/model/volume-record.ts';
import { hold } from '../../kernel/violation.ts';
import type { SimulatedProvider } from '../providers/simulated-provider.ts';
import type { CheckedWorld } from './inspector.ts';

/** A poll is due every 30 s; the rest is for a slow call. */
const POLLED_WITHIN_MS = 35_000;

/** I2, at any time: one create makes one machine, whichever answers are lost. */
export function machinesAreSingle({ providers }: CheckedWorld): void {
  for (const { machines } of providers) {
    const seen = new Set<string>();
    for (const { id, wantedName } of machines.values()) {
      hold('I2', !seen.has(wantedName), () => `${id} is a second machine for ${wantedName}`, [
        id,
        wantedName,
      ]);
      seen.add(wantedName);
    }
  }
}

/** I42: at rest each deployment and volume is billed as it is: its state, and the rate that it shows. */
export async function billsAgree({ inspector, database }: CheckedWorld): Promise<void> {
  const { ledger } = database.store.read;
  for (const { record } of inspector.deployments.values()) {
    const open = await ledger.openSegmentOf('deployment', record.id);
    const isStopped = record.status === 'stopped';
    const expected =
      record.status === 'running' || isStopped
        ? `${record.status} ${isStopped ? record.stoppedRateMicroUsd : record.rateMicroUsd}`
        : 'none';
    const found = open === null ? 'none' : `${open.state} ${open.rateMicroUsdPerHour}`;
    hold('I42', found === expected, () => `${record.id} is billed ${found}, and shows ${expected}`, [
      record.id,
    ]);
  }
  for (const { record } of inspector.volumes.values()) {
    const open = await ledger.openSegmentOf('volume', record.id);
    const isBilled = record.startedAt !== null && record.deletedAt === null;
    const expected = isBilled ? record.rateMicroUsd : 'none';
    const found = open === null ? 'none' : open.rateMicroUsdPerHour;
    hold('I42', found === expected, () => `${record.id} is billed ${found}, and shows ${expected}`, [
      record.id,
    ]);
  }
}

/** I24, I23, I3: at rest each deployment agrees with its machine, and nothing is under way. */
export function deploymentsRest(world: CheckedWorld): void {
  for (const { record } of world.inspector.deployments.values())
    deploymentRests(record, world.provider(record.providerId));
}

function deploymentRests(record: DeploymentRecord, { living }: SimulatedProvider): void {
  const { id, status, cleanup, action, suspicion, providerName } = record;
  const words = [id, ...(record.providerInstanceId === null ? [] : [`${record.providerInstanceId} `])];
  hold('I24', status !== 'deploying', () => `${id} is deploying still`, words);
  hold('I24', cleanup !== 'wanted', () => `${id} is ${status}, and is not cleaned up`, words);
  const mine = living.filter(({ name = '' }) => name === providerName || name.startsWith(`${providerName}-`));
  if (!activeStatuses.includes(status)) {
    hold('I3', mine.length === 0, () => `${id} is ${status}, and has ${mine.map((it) => it.id)}`, words);
    return;
  }
  hold('I24', action === null, () => `${id} has a ${action?.kind} under way`, words);
  hold('I24', suspicion === null, () => `${id} is suspected to be ${suspicion?.status}`, words);
  const [only] = mine;
  hold('I2', mine.length === 1, () => `${id} is ${status}, and has ${mine.length} machines`, words);
  const wanted = status === 'running' ? 'ONLINE' : 'STOPPED';
  hold(
    'I23',
    only?.id === record.providerInstanceId && only.status === wanted,
    () => `${id} is ${status}, and its machine ${only?.id} is ${only?.status}`,
    words,
  );
}

/** I24, I15: {@link deploymentsRest}, for volumes. */
export async function volumesRest(world: CheckedWorld): Promise<void> {
  const { inspector, database } = world;
  const lost = new Set(inspector.wrongLosses.map(({ id }) => id));
  for (const { record } of inspector.volumes.values()) {
    // It was ended while its provider denied it, so nothing deletes it any more.
    if (lost.has(record.id)) continue;
    const attachments = await database.store.read.volumes.attachmentsOf({ volumeId: record.id });
    volumeRests(record, attachments, world.provider(record.providerId), (id) => {
      const { providerInstanceId } = inspector.deployments.get(id)?.record ?? {};
      return providerInstanceId ?? '';
    });
  }
}

function volumeRests(
  record: VolumeRecord,
  attachments: readonly { deploymentId: string; state: string }[],
  { plain: { volumes } }: SimulatedProvider,
  machineOf: (deploymentId: string) => string,
): void {
  const { id, status, action, sizeGb, providerSizeGb } = record;
  const words = [id, record.providerVolumeId ?? id];
  hold('I24', action === null, () => `${id} has a ${action?.kind} under way`, words);
  hold('I24', status !== 'creating' && status !== 'deleting', () => `${id} is ${status} still`, words);
  const mine = volumes.filter(({ name }) => name === record.providerName);
  if (status === 'deleted') {
    hold('I3', mine.length === 0, () => `${id} is deleted, and is at the provider`, words);
    return;
  }
  // A volume in error may not exist: its create was unclear, or it broke at the provider.
  if (status === 'error' && mine.length === 0) return;
  const [only] = mine;
  hold('I15', mine.length === 1, () => `${id} is ${status}, and there are ${mine.length}`, words);
  const isSized = status === 'error' || only?.size_gb === (providerSizeGb ?? sizeGb);
  hold('I15', isSized, () => `${id} has ${sizeGb} GB, and truly ${only?.size_gb}`, words);
  const told = attachments.map(({ deploymentId, state }) => `${state} ${machineOf(deploymentId)}`).sort();
  const truth = (only?.attached_instance_ids ?? []).map((machine) => `attached ${machine}`).sort();
  hold('I15', told.join() === truth.join(), () => `${id} is ${told}, and truly ${truth}`, words);
}

/** I12: no key outlives its deployment. */
export async function keysAreGone({ inspector, database }: CheckedWorld): Promise<void> {
  for (const { record } of inspector.deployments.values()) {
    if (record.stoppedAt === null || record.tempSshKeyId === null) continue;
    const key = await database.store.read.sshKeys.byId(record.tempSshKeyId);
    hold('I12', key === null, () => `${record.id} is over, and its key ${record.tempSshKeyId} is there`);
  }
}

/** I24: every mail in the outbox was sent, and each deployment has one mail of each kind. */
export async function mailsAreSent({ inspector, database }: CheckedWorld): Promise<void> {
  const mails = await database.store.read.mail.list({ limit: 10_000 });
  const keys = new Set(mails.map(({ dedupeKey }) => dedupeKey));
  hold('I24', keys.size === mails.length, () => 'the same news is to be mailed twice');
  for (const { id, dedupeKey, sentAt } of mails)
    hold('I24', sentAt !== null && inspector.mails.has(id), () => `${dedupeKey} was not mailed`, [id]);
  for (const { record } of inspector.deployments.values()) {
    const ready = `deployment_ready:${record.id}:${record.userId}`;
    hold('I24', keys.has(ready) === (record.startedAt !== null), () => `${ready} was not decided on`, [
      record.id,
    ]);
  }
}

/** I24: usage is posted to the balances in time. */
export async function billsAreFresh({ database, scheduler, scenario }: CheckedWorld): Promise<void> {
  const latest = scheduler.now - scenario.options.billing.sliceMs - 3 * POLLED_WITHIN_MS;
  const open = await database.store.read.ledger.openSegments({ limit: 10_000 });
  for (const { subjectId, postedUntil, startedAt } of open)
    hold(
      'I24',
      postedUntil >= latest || startedAt >= latest,
      () => `${subjectId} is billed until ${postedUntil} only`,
      [subjectId],
    );
}

/** I26: every active deployment is polled every 30 s. */
export function machinesArePolled(world: CheckedWorld): void {
  const { inspector, scheduler } = world;
  for (const { record } of inspector.deployments.values()) {
    if (record.stoppedAt !== null || record.providerInstanceId === null) continue;
    const { machines } = world.provider(record.providerId);
    const silentMs = scheduler.now - (machines.get(record.providerInstanceId)?.lastPolledAt ?? 0);
    hold('I26', silentMs <= POLLED_WITHIN_MS, () => `${record.id} was not polled for ${silentMs} ms`, [
      record.id,
    ]);
  }
}
