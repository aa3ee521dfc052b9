import { isDeepStrictEqual } from 'node:util';
import type { ObservedVolume, OwnerRef } from '../../orchestrator/model/platform-driver.ts';
import { targetOf, type Volume } from './api.ts';
import { IncusRefusal, unlessConflict } from './errors.ts';
import { refsOf } from './finder.ts';
import type { Platform } from './platform.ts';
import { fromPlatformVolume, hasPartOfMark, hostOf, isMarked, isOurs, mark, usersOf } from './translate.ts';

/** The pool of the volumes. */
export const poolOf = ({ options }: Pick<Platform, 'options'>): string =>
  options.volume_pool ?? options.storage_pool;

/** Incus lists a volume's snapshots too, as VOLUME/SNAPSHOT, with the configuration of the volume. */
export async function readVolumes(platform: Platform): Promise<Volume[]> {
  const all = await platform.api.volumes(poolOf(platform));
  return all.filter(({ type, name }) => type === 'custom' && !name.includes('/'));
}

/** Names of an operator's snapshots of a volume. */
export async function snapshotsOf(platform: Platform, ref: OwnerRef): Promise<string[]> {
  const all = await platform.api.volumes(poolOf(platform));
  return all.flatMap(({ name }) => (name.startsWith(`${ref}/`) ? name.slice(ref.length + 1) : []));
}

export async function volumesNamed(platform: Platform, ref: OwnerRef): Promise<Volume[]> {
  return (await readVolumes(platform)).filter(({ name }) => name === ref);
}

export async function findVolume(platform: Platform, ref: OwnerRef): Promise<Volume | undefined> {
  return originalOf(ref, await volumesNamed(platform, ref));
}

export function originalOf(ref: OwnerRef, named: readonly Volume[]): Volume | undefined {
  const found = original(named.filter(isOurs));
  if (found === undefined && named.some(hasPartOfMark))
    throw new IncusRefusal(409, `the volume ${ref} has only a part of Berth's mark (user.berth.*)`, 'GET');
  return found;
}

export async function showVolume(platform: Platform, volume: Volume): Promise<ObservedVolume> {
  const [shown] = await showVolumes(platform, [volume]);
  return shown as ObservedVolume;
}

/** The volumes with the refs of the machines that they are attached to, under any name. */
export async function showVolumes(platform: Platform, volumes: readonly Volume[]): Promise<ObservedVolume[]> {
  const users = volumes.flatMap(usersOf);
  const refs = users.length === 0 ? undefined : await refsOf(platform, users);
  return volumes.map((one) =>
    fromPlatformVolume(
      one,
      usersOf(one).map((name) => refs?.get(name) ?? name),
    ),
  );
}

/** Changes the volume's configuration. Returns false if it has changed since it was read. */
export async function changeVolume(
  platform: Platform,
  { name, location, config }: Volume,
  changes: object,
): Promise<boolean> {
  const { api, call } = platform;
  const found = await api.volume(poolOf(platform), name, location);
  if (found === undefined || !areSame(found.value.config, config)) return false;
  const options = { query: targetOf(location), body: { config: changes }, etag: found.etag, call };
  const sending = api.client.send('PATCH', volumePath(platform, name), options);
  return (await unlessConflict(sending)) !== undefined;
}

export async function isVolumeBusy(platform: Platform, ref: OwnerRef): Promise<boolean> {
  const path = volumePath(platform, ref);
  return (await platform.api.operations()).some(
    ({ status_code: code, resources }) =>
      code < 200 &&
      Object.values(resources ?? {}).some((paths) => paths?.some((one) => one.split('?')[0] === path)),
  );
}

export function volumePath(platform: Platform, ref?: OwnerRef): string {
  return `/1.0/storage-pools/${poolOf(platform)}/volumes/custom${ref === undefined ? '' : `/${ref}`}`;
}

/** Returns the original of several volumes with one name on different members: the one in use, or else the oldest. */
export function original(ours: readonly Volume[]): Volume | undefined {
  const oldest = ours.toSorted((a, b) => Date.parse(a.created_at) - Date.parse(b.created_at));
  return oldest.find((one) => usersOf(one).length > 0) ?? oldest[0];
}

/** Whether it is a copy without the mark that confirms that it is complete. */
export function isIncomplete(volume: Volume): boolean {
  return volume.config[mark.copyOf] !== undefined && !isMarked(volume);
}

/** Whether the host has the volume. A volume of a shared pool is on every member. */
export function isOn(volume: Volume, host: string): boolean {
  return (hostOf(volume) ?? host) === host;
}

/** Whether two configurations are the same, except for the settings that Incus records itself. */
function areSame(...configs: [Volume['config'], Volume['config']]): boolean {
  const [one, other] = configs.map((config) =>
    Object.fromEntries(Object.entries(config).filter(([key]) => !key.startsWith('volatile.'))),
  );
  return isDeepStrictEqual(one, other);
}
