import type { DestroyOrder } from '../../orchestrator/model/destroy-order.ts';
import type { OwnerRef, Step } from '../../orchestrator/model/platform-driver.ts';
import { done, failed } from '../../platform-model/steps.ts';
import { heldBySnapshots } from '../kit/foreign-snapshots.ts';
import type { Instance } from './api.ts';
import { removeForwards } from './endpoints.ts';
import { isConflict, isNotFound, unlessConflict } from './errors.ts';
import { noteIdentity, searchMachine } from './finder.ts';
import { isGpuName } from './gpus.ts';
import { failureOf, operationOf, operationsOn, POLL_MS, pathOf, setPower, underWay } from './operations.ts';
import type { MachineMethod, Platform } from './platform.ts';
import { isMarked, isMarkKey, isStopped, mark, phases, refOf } from './translate.ts';
import { poolOf } from './volume-records.ts';

const PROTECTION = 'security.protection.delete';

export const destroyMachine: MachineMethod<'destroy'> = async (platform, ref, cookie, order) => {
  const found = await searchMachine(platform, ref);
  switch (found.is) {
    case 'unknown':
      return failed('transient', found.reason, 'possible');
    case 'coming':
      return underWay('destroy');
    case 'foreign':
    case 'absent':
      // Another Berth with an older read of the forwards may have restored the machine's ports, so check again.
      return (await removeForwards(platform, ref, order)) ? underWay('destroy') : done(null);
    case 'ours':
      if (found.isMoving) return underWay(cookie ?? 'destroy');
      // Once the machine is gone, a doubtful instance would be taken for it.
      if (found.doubtful.length > 0)
        return failed(
          'conflict',
          `${found.doubtful.join(', ')} also has the mark of ${ref}, and may be a copy: unset ${mark.ref} there`,
        );
      return removeMachine(platform, found.instance, cookie, order);
  }
};

async function removeMachine(
  platform: Platform,
  instance: Instance,
  cookie: string | null,
  order: DestroyOrder,
): Promise<Step<null>> {
  const { name } = instance;
  const problem = await failureOf(platform.api, cookie, 'delete', 'off');
  if (problem !== undefined) return problem;
  const operation = await operationOf(platform.api, cookie);
  if (operation !== undefined && operation.status_code < 200) return underWay(cookie ?? 'destroy');
  const busy = (await operationsOn(platform.api, name)).find(({ status_code: code }) => code < 200);
  if (busy !== undefined) return underWay(`wait:${busy.id}`);
  if (!isStopped(instance))
    return setPower(platform, name, { action: 'stop', force: true, timeout: -1 }, 'off');
  const held = heldBy(platform, instance);
  if (held !== undefined) return failed('conflict', held);
  await removeForwards(platform, refOf(instance), order);
  // The id is noted, so that a copy made from now on is recognised as a copy. An interrupted record is left
  // unchanged: for a change Incus makes an empty folder in place of a missing disk, and then cannot delete it.
  const isBuilt = instance.config[mark.phase] !== undefined;
  if (isBuilt && !(await noteIdentity(platform, instance))) return underWay('destroy');
  return underWay(`delete:${await deleteInstance(platform, name, order)}`);
}

/** Why Incus refuses to delete the machine, or would remove an operator's snapshots and backups with it. */
function heldBy(
  { options: { on_foreign_snapshot: policy } }: Platform,
  instance: Instance,
): string | undefined {
  const { name, snapshots, backups, expanded_config: config } = instance;
  if (/^(true|1|yes|on)$/i.test(config[PROTECTION] ?? ''))
    return `${PROTECTION} protects ${name}: incus config set ${name} ${PROTECTION}=false`;
  const names = [...(snapshots ?? []), ...(backups ?? [])].map((one) => one.name);
  if (policy === 'delete' || names.length === 0) return undefined;
  return heldBySnapshots({ ref: refOf(instance), kind: 'snapshots or backups', names }, policy);
}

/** Deletes an instance. Returns undefined if it is gone already, or running. @throws as {@link IncusApi} */
async function deleteInstance(
  { api, call }: Platform,
  name: string,
  order: DestroyOrder,
): Promise<string | undefined> {
  try {
    return (await api.client.send('DELETE', pathOf(name), { order, call })).operation;
  } catch (error) {
    if (isNotFound(error) || isConflict(error)) return undefined;
    throw error;
  }
}

/** Changing the configuration of a stopped instance takes Incus only a moment. */
const POLLS = 10;

/**
 * Removes Berth's mark, GPUs and volumes from a stopped instance, in one request. Its ports are removed before: the
 * instance is found again only while it has the mark.
 */
export const disownMachine: MachineMethod<'disown'> = async (platform, ref, cookie) => {
  const { api } = platform;
  const found = await searchMachine(platform, ref);
  switch (found.is) {
    case 'unknown':
      return failed('transient', found.reason);
    case 'coming':
      return failed('conflict', `Incus is still making ${ref}`);
    case 'foreign':
    case 'absent':
      if (found.silent.size > 0)
        return failed('transient', `${[...found.silent].join(', ')} may have ${ref}, but does not answer`);
      await removeForwards(platform, ref);
      return done(null);
    case 'ours': {
      const operation = await operationOf(api, cookie);
      if (operation !== undefined && operation.status_code < 200) return underWay(cookie ?? 'disown');
      const problem = await failureOf(api, cookie, 'disown');
      if (problem !== undefined) return problem;
      if (found.isMoving) return failed('transient', `Incus is moving ${ref}`);
      // Without its mark, the machine would be confused with a doubtful instance.
      if (found.doubtful.length > 0)
        return failed(
          'conflict',
          `${found.doubtful.join(', ')} also has the mark of ${ref}, and may be a copy: unset ${mark.ref} there`,
        );
      return unmark(platform, ref, found.instance.name);
    }
  }
};

/**
 * Removes the mark of a stopped instance. If the tagged record says stopped, the instance is still stopped when the
 * change applies, because a start changes the tag.
 */
async function unmark(platform: Platform, ref: OwnerRef, name: string): Promise<Step<null>> {
  const { api, wait, call } = platform;
  const pool = poolOf(platform);
  const [read, volumes] = await Promise.all([api.instanceToReplace(name), api.volumes(pool)]);
  if (read === undefined) return underWay('disown');
  const { value, etag } = read;
  const config = (value['config'] ?? {}) as Instance['config'];
  const devices = (value['devices'] ?? {}) as Instance['devices'];
  if (!isStopped({ status_code: Number(value['status_code']) }))
    return failed('conflict', `${name} is ${String(value['status']).toLowerCase()}: stop it first`);
  if (config[mark.phase] !== phases.created)
    return failed('conflict', `${name} was not created completely: destroy it instead`);
  await removeForwards(platform, ref);
  const ours = new Set(volumes.filter(isMarked).map((volume) => volume.name));
  const isOurs = ({ type, source = '', pool: of = pool }: Record<string, string>): boolean =>
    type === 'disk' && of === pool && ours.has(source);
  const body = {
    ...value,
    config: Object.fromEntries(Object.entries(config).filter(([key]) => !isMarkKey(key))),
    devices: Object.fromEntries(
      Object.entries(devices).filter(([device, one]) => !isGpuName(device) && !isOurs(one)),
    ),
  };
  const reply = await unlessConflict(api.client.send('PUT', pathOf(name), { body, etag, call }));
  if (reply === undefined) return underWay('disown');
  const cookie = `disown:${reply.operation}`;
  for (let polls = 0; polls < POLLS; polls++) {
    const operation = await operationOf(api, cookie);
    if (operation === undefined || operation.status_code >= 200) break;
    await wait(POLL_MS);
  }
  return (
    (await failureOf(api, cookie, 'disown')) ??
    ((await searchMachine(platform, ref)).is === 'ours' ? underWay(cookie) : done(null))
  );
}
