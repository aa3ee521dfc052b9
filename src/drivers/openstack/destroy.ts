import type { DestroyOrder } from '../../orchestrator/model/destroy-order.ts';
import type { OwnerRef, Step } from '../../orchestrator/model/platform-driver.ts';
import { done, failed, pending } from '../../platform-model/steps.ts';
import type { Server, Volume } from './api.ts';
import { unlessConflict } from './errors.ts';
import { type Attempt, NOTHING, readEverything, shelveImages } from './objects.ts';
import { type MachineMethod, type Platform, POLL_MS } from './platform.ts';
import { isCopy, isMarkKey, mark, readDescription, refOf, toDescription } from './translate.ts';

const COOKIE = 'server:';

/**
 * Removes everything of an attempt. Its port goes last: while it is there, `get` shows the machine as being destroyed,
 * and the port names the server, also one that Nova keeps as soft-deleted and does not list.
 */
export const destroyMachine: MachineMethod<'destroy'> = async (platform, ref, cookie, order) => {
  const { attempts } = await readEverything(platform);
  const attempt = attempts.get(ref) ?? NOTHING;
  await markPorts(platform, ref, attempt);
  const ids = serverIds(attempt, cookie);
  const servers = (await Promise.all(ids.map((id) => platform.api.server(id)))).filter(
    (one): one is Server =>
      one !== undefined && refOf(one) === ref && !isCopy(one) && one.status !== 'DELETED',
  );
  const locked = servers.find((server) => server.locked);
  if (locked !== undefined)
    return failed('conflict', `the server ${locked.id} is locked: \`openstack server unlock ${locked.id}\``);
  for (const server of servers) await removeServer(platform, server, order);
  const waiting = pending(`${COOKIE}${ids.join(',')}`, POLL_MS);
  if (servers.length > 0) return waiting;
  const [serverId] = ids;
  const left = [
    await removeFloatingIps(platform, attempt, order),
    await removeBootVolumes(platform, attempt.bootVolumes, order),
    await removeImages(platform, ref, serverId, order),
  ].some(Boolean);
  if (left) return waiting;
  for (const { id } of attempt.ports)
    await platform.api.client.send('DELETE', 'network', `/ports/${id}`, { order, call: platform.call });
  return attempt.ports.length > 0 ? waiting : done(null);
};

function serverIds({ server, duplicates, ports }: Attempt, cookie: string | null): string[] {
  const noted = cookie?.startsWith(COOKIE) ? cookie.slice(COOKIE.length).split(',') : [];
  const plugged = ports.map(({ device_id: id }) => id);
  const known = [server?.id, ...duplicates.map(({ id }) => id), ...noted, ...plugged];
  return [...new Set(known.filter((id): id is string => id !== undefined && id !== ''))];
}

async function markPorts({ api, call }: Platform, ref: OwnerRef, { ports }: Attempt): Promise<void> {
  const port = { description: toDescription(ref, 'destroying') };
  for (const one of ports)
    if (readDescription(one)?.phase !== 'destroying')
      await api.client.send('PUT', 'network', `/ports/${one.id}`, { body: { port }, call });
}

async function removeServer(
  { api, call }: Platform,
  { id, status, ...server }: Server,
  order: DestroyOrder,
): Promise<void> {
  if (server['OS-EXT-STS:task_state'] === 'deleting') return;
  const path = `/servers/${id}`;
  // Nova may keep a deleted server for a while, to restore it.
  const sending =
    status === 'SOFT_DELETED'
      ? api.client.send('POST', 'compute', `${path}/action`, { body: { forceDelete: null }, call })
      : api.client.send('DELETE', 'compute', path, { order, call });
  await unlessConflict(sending);
}

/** Each of these returns whether something is left. */
async function removeFloatingIps(
  { api, call }: Platform,
  { floatingIps }: Attempt,
  order: DestroyOrder,
): Promise<boolean> {
  for (const { id } of floatingIps)
    await unlessConflict(api.client.send('DELETE', 'network', `/floatingips/${id}`, { order, call }));
  return floatingIps.length > 0;
}

async function removeBootVolumes(
  platform: Platform,
  volumes: readonly Volume[],
  order: DestroyOrder,
): Promise<boolean> {
  for (const volume of volumes) await removeVolume(platform, volume, order);
  return volumes.length > 0;
}

const REMOVABLE = new Set(['available', 'error', 'error_deleting', 'error_extending', 'error_restoring']);

/** Takes a volume from servers that are gone, and deletes it once nothing uses it. */
export async function removeVolume(
  { api, call }: Platform,
  { id, status, attachments }: Volume,
  order: DestroyOrder,
): Promise<void> {
  for (const { server_id: server, attachment_id: attachment } of attachments) {
    const path = `/servers/${server}/os-volume_attachments/${id}`;
    const sending =
      (await api.server(server)) === undefined
        ? api.client.send('DELETE', 'volume', `/attachments/${attachment}`, { keepsData: true, call })
        : status === 'in-use' && api.client.send('DELETE', 'compute', path, { keepsData: true, call });
    if (sending) await unlessConflict(sending);
  }
  if (attachments.length === 0 && REMOVABLE.has(status))
    await unlessConflict(api.client.send('DELETE', 'volume', `/volumes/${id}`, { order, call }));
}

async function removeImages(
  platform: Platform,
  ref: OwnerRef,
  serverId: string | undefined,
  order: DestroyOrder,
): Promise<boolean> {
  const images = await shelveImages(platform, ref, serverId);
  for (const { id } of images)
    await unlessConflict(
      platform.api.client.send('DELETE', 'image', `/images/${id}`, { order, call: platform.call }),
    );
  return images.length > 0;
}

/** Removes Berth's mark from a server that is shut off, and from its other objects. */
export const disownMachine: MachineMethod<'disown'> = async (platform, ref) => {
  const { api, call } = platform;
  const { server, duplicates, ports, floatingIps, bootVolumes } =
    (await readEverything(platform)).attempts.get(ref) ?? NOTHING;
  if (server !== undefined && !/^(SHUTOFF|SHELVED|SHELVED_OFFLOADED)$/.test(server.status))
    return failed('conflict', `the server ${server.id} is not shut off`);
  if (duplicates.length > 0)
    return failed('conflict', `${duplicates.map(({ id }) => id).join(', ')} also has the mark of ${ref}`);
  const unmarked = { description: '' };
  for (const { id } of floatingIps)
    await api.client.send('PUT', 'network', `/floatingips/${id}`, { body: { floatingip: unmarked }, call });
  for (const { id } of ports)
    await api.client.send('PUT', 'network', `/ports/${id}`, { body: { port: unmarked }, call });
  for (const { id } of bootVolumes)
    await api.client.send('DELETE', 'volume', `/volumes/${id}/metadata/${mark.bootOf}`, {
      keepsData: true,
      call,
    });
  if (server === undefined) return done(null) as Step<null>;
  await unlessConflict(
    api.client.send('DELETE', 'compute', `/servers/${server.id}/tags/${ref}`, { keepsData: true, call }),
  );
  const kept = Object.entries(server.metadata ?? {}).filter(([key]) => !isMarkKey(key));
  const metadata = Object.fromEntries(kept);
  await api.client.send('PUT', 'compute', `/servers/${server.id}/metadata`, { body: { metadata }, call });
  return done(null);
};
