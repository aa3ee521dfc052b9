import type { DestroyOrder } from '../../orchestrator/model/destroy-order.ts';
import type { OwnerRef, Step } from '../../orchestrator/model/platform-driver.ts';
import { done, failed, pending } from '../../platform-model/steps.ts';
import type { Server, Volume } from './api.ts';
import { KEEPS_DATA } from './client.ts';
import { CloudRefusal, unlessConflict, unlessGone } from './errors.ts';
import {
  type Attempt,
  markIsMissing,
  NOTHING,
  readEverything,
  readServers,
  shelveImages,
} from './objects.ts';
import { type MachineMethod, type Platform, POLL_MS, waitForServer, waitForVolume } from './platform.ts';
import {
  detailOf,
  isCopy,
  isMarkKey,
  mark,
  readDescription,
  refOf,
  taskOf,
  toDescription,
  usersOf,
} from './translate.ts';

const COOKIE = 'server:';
const REST = 'addresses, images and ports are removed';

/**
 * Removes everything of an attempt. Its port goes last: while it is there, `get` shows the machine as being destroyed,
 * and the port names the server, also one that Nova keeps as soft-deleted and does not list.
 */
export const destroyMachine: MachineMethod<'destroy'> = async (platform, ref, cookie, order) => {
  const { attempts } = await readEverything(platform);
  const attempt = attempts.get(ref) ?? NOTHING;
  await markPorts(platform, ref, attempt);
  const ids = serverIds(attempt, cookie);
  const found = await readServers(platform.api, ids);
  const unmarked = found.find((one) => refOf(one) === undefined && one.tags?.includes(ref));
  if (unmarked !== undefined) throw markIsMissing(unmarked, ref);
  const servers = found.filter((one) => refOf(one) === ref && !isCopy(one));
  const locked = servers.find((server) => server.locked);
  if (locked !== undefined) return lockedServer(locked);
  const undone = servers.find((one) => cookie?.includes(one.id) && isLeft(one));
  if (undone !== undefined) return notDone(undone, 'delete');
  for (const server of servers) await removeServer(platform, server, order);
  const next = `${COOKIE}${ids.join(',')}`;
  const [last] = servers;
  // Before it is shown as deleting, its last change was something else: no deadline.
  if (last !== undefined)
    return taskOf(last) === 'deleting'
      ? waitForServer(next, last)
      : pending(next, POLL_MS, 'its server is deleted');
  const stuck = attempt.bootVolumes.find(isStuck);
  if (stuck !== undefined) return stuckVolume(stuck);
  const { floatingIps, bootVolumes } = attempt;
  for (const { id } of floatingIps)
    await unlessConflict(platform.api.remove('network', `/floatingips/${id}`, { order }));
  for (const volume of bootVolumes) await removeVolume(platform, volume, order);
  const images = await shelveImages(platform, ref, ids);
  for (const { id } of images) await unlessConflict(platform.api.remove('image', `/images/${id}`, { order }));
  const [boot] = bootVolumes;
  if (boot !== undefined) return waitForVolume(next, boot);
  if (floatingIps.length + images.length > 0) return pending(next, POLL_MS, REST);
  for (const { id } of attempt.ports)
    await unlessGone(platform.api.remove('network', `/ports/${id}`, { order }));
  return attempt.ports.length > 0 ? pending(next, POLL_MS, REST) : done(null);
};

function serverIds({ server, duplicates, ports }: Attempt, cookie: string | null): string[] {
  const noted = cookie?.startsWith(COOKIE) ? cookie.slice(COOKIE.length).split(',') : [];
  const plugged = ports.flatMap((port) => [port.device_id, readDescription(port)?.serverId]);
  const known = [server?.id, ...duplicates.map(({ id }) => id), ...noted, ...plugged];
  return [...new Set(known.filter((id): id is string => id !== undefined && id !== ''))];
}

async function markPorts({ api }: Platform, ref: OwnerRef, { ports, server }: Attempt): Promise<void> {
  for (const one of ports) {
    const known = readDescription(one);
    if (known?.phase === 'destroying') continue;
    const serverId = known?.serverId ?? server?.id;
    const description = toDescription({ ref, phase: 'destroying', serverId, note: known?.note });
    // Another call of the same order may have removed it.
    await unlessGone(api.update('network', `/ports/${one.id}`, 'port', { description }));
  }
}

/** The failure while an administrator has locked a server: Nova refuses members every change. */
export const lockedServer = ({ id }: Server): Step<never> =>
  failed('conflict', `the server ${id} is locked: \`openstack server unlock ${id}\``);

/** The failure after an accepted request that has ended without effect: Nova shows a task before it answers. */
export const notDone = (server: Server, request: string): Step<never> =>
  failed(
    'internal',
    `Nova accepted ${request} of the server ${server.id} and did not do it: ${detailOf(server)}`,
    'certain',
  );

/** Whether an accepted DELETE has ended without effect: Nova shows its task before it answers. */
const isLeft = (server: Server): boolean => taskOf(server) === undefined && server.status !== 'SOFT_DELETED';

async function removeServer({ api }: Platform, server: Server, order: DestroyOrder): Promise<void> {
  if (taskOf(server) === 'deleting') return;
  const path = `/servers/${server.id}`;
  // Nova may keep a deleted server for a while, to restore it.
  const isKept = server.status === 'SOFT_DELETED';
  await unlessConflict(
    isKept ? api.act('compute', path, { forceDelete: null }) : api.remove('compute', path, { order }),
  );
}

const REMOVABLE = new Set(['available', 'error', 'error_extending', 'error_restoring']);

/** Whether Cinder failed to delete it. It refuses requests until an administrator resets it. */
export const isStuck = ({ status }: Volume): boolean => status === 'error_deleting';

/** The failure for a volume that an administrator must reset. */
export function stuckVolume({ id, status }: Volume): Step<never> {
  const remedy = `\`openstack volume set --state available ${id}\``;
  return failed('internal', `the volume ${id} is ${status}: find the cause, then ${remedy}`, 'certain');
}

/** Takes a volume from its servers, and deletes it once nothing uses it. */
export async function removeVolume(platform: Platform, volume: Volume, order: DestroyOrder): Promise<void> {
  const users = usersOf(volume);
  for (const server of users) await detachFrom(platform, volume, server);
  if (users.length > 0 || !REMOVABLE.has(volume.status)) return;
  const { api } = platform;
  const removed = unlessConflict(api.remove('volume', `/volumes/${volume.id}`, { order }));
  await removed.catch(async (error) => {
    const holding = (await api.snapshots({ volume_id: volume.id })).map(({ id, name }) => name || id);
    if (holding.length === 0) throw error;
    const remedy = 'copy what is needed, then `openstack volume snapshot delete`';
    throw new CloudRefusal(409, `snapshots hold the volume ${volume.id}: ${holding.join(', ')}. ${remedy}`);
  });
}

/** Takes a volume from a server, or removes the attachment that outlived its server. */
export async function detachFrom({ api }: Platform, volume: Volume, server: string): Promise<void> {
  const { id, status, attachments } = volume;
  if ((await api.server(server)) !== undefined) {
    if (status === 'in-use' || status === 'reserved')
      await unlessConflict(
        api.remove('compute', `/servers/${server}/os-volume_attachments/${id}`, KEEPS_DATA),
      );
    return;
  }
  for (const { attachment_id: attachment } of attachments.filter((one) => one.server_id === server))
    await unlessConflict(api.remove('volume', `/attachments/${attachment}`, KEEPS_DATA));
}

/** Removes Berth's mark from a server that is shut off, and from its other objects. */
export const disownMachine: MachineMethod<'disown'> = async (platform, ref) => {
  const { api } = platform;
  const { server, duplicates, ports, floatingIps, bootVolumes } =
    (await readEverything(platform)).attempts.get(ref) ?? NOTHING;
  if (server !== undefined && server.status !== 'SHUTOFF')
    return failed(
      'conflict',
      server.status.startsWith('SHELVED')
        ? `Nova keeps the marks of a shelved server: \`openstack server unshelve ${server.id}\`, then \`openstack server stop\``
        : `the server ${server.id} is not shut off`,
    );
  if (duplicates.length > 0)
    return failed('conflict', `${duplicates.map(({ id }) => id).join(', ')} also has the mark of ${ref}`);
  const unmarked = { description: '' };
  for (const { id } of floatingIps) await api.update('network', `/floatingips/${id}`, 'floatingip', unmarked);
  for (const { id } of ports) await api.update('network', `/ports/${id}`, 'port', unmarked);
  for (const { id } of bootVolumes)
    await api.remove('volume', `/volumes/${id}/metadata/${mark.bootOf}`, KEEPS_DATA);
  if (server === undefined) return done(null);
  const path = `/servers/${server.id}`;
  await unlessConflict(api.remove('compute', `${path}/tags/${ref}`, KEEPS_DATA));
  const kept = Object.entries(server.metadata ?? {}).filter(([key]) => !isMarkKey(key));
  await api.update('compute', `${path}/metadata`, 'metadata', Object.fromEntries(kept));
  return done(null);
};
