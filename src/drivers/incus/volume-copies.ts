import type { ObservedVolume, OwnerRef, Step, VolumeSpec } from '../../orchestrator/model/platform-driver.ts';
import { done, failed, unfinished } from '../../platform-model/steps.ts';
import { targetOf, type Volume } from './api.ts';
import { failureOf, operationOf, underWay, withEffect } from './operations.ts';
import type { Platform, VolumeMethod } from './platform.ts';
import { bytesOf, isName, mark, usersOf } from './translate.ts';
import {
  changeVolume,
  findVolume,
  isIncomplete,
  isOn,
  isVolumeBusy,
  originalOf,
  poolOf,
  showVolume,
  volumePath,
  volumesNamed,
} from './volume-records.ts';

/**
 * Copies to the member `spec.host`, under the name `spec.ref`. The copy gets Berth's mark only if Incus reports
 * success, its size and content type match, and the original is still not attached. Removes nothing.
 */
export const copyVolume: VolumeMethod<'copy'> = async (platform, ref, spec, cookie) => {
  if (!isName(spec.ref) || spec.ref === ref)
    return failed('invalid', `a copy of ${ref} cannot be called ${spec.ref}`);
  const [volume, named] = [await findVolume(platform, ref), await volumesNamed(platform, spec.ref)];
  const ready = originalOf(spec.ref, named);
  if (ready !== undefined) return judgeCopy(platform, volume, ready, ref, spec);
  const operation = await operationOf(platform.api, cookie);
  const isRunning = operation !== undefined && operation.status_code < 200;
  if (isRunning || (await isVolumeBusy(platform, spec.ref))) return underWay(cookie ?? 'copy');
  const copy = named.find(isIncomplete);
  if (copy !== undefined)
    return operation?.status_code === 200 && volume !== undefined
      ? withEffect(() => completeCopy(platform, volume, copy, spec, cookie))
      : unfinished('a copy was interrupted and may be incomplete');
  if (named.length > 0)
    return failed('already_exists', `a volume ${spec.ref} already exists, and it is not Berth's`);
  if (operation !== undefined && operation.status_code >= 400)
    return (await failureOf(platform.api, cookie)) ?? failed('transient', 'the copy failed');
  if (volume === undefined) return failed('gone', `there is no volume ${ref}`);
  const users = usersOf(volume);
  if (users.length > 0) return failed('conflict', `it is attached to ${users.join(', ')}`);
  if (!(await changeVolume(platform, volume, { [mark.copiedTo]: spec.ref }))) return underWay('copy');
  const { api, call } = platform;
  const { operation: id } = await api.client.send('POST', volumePath(platform), {
    call,
    query: targetOf(spec.host ?? volume.location),
    body: {
      name: spec.ref,
      ...(volume.content_type !== undefined && { content_type: volume.content_type }),
      config: { ...settingsOf(volume), [mark.copyOf]: ref },
      source: { type: 'copy', name: ref, pool: poolOf(platform), location: volume.location },
    },
  });
  return underWay(`copy:${id}`);
};

/**
 * Decides whether a copy can be used. A copy with Berth's mark is complete. It is usable only if the original has not
 * been written to since.
 */
async function judgeCopy(
  platform: Platform,
  volume: Volume | undefined,
  ready: Volume,
  ref: OwnerRef,
  spec: VolumeSpec,
): Promise<Step<ObservedVolume>> {
  if (ready.config[mark.copyOf] !== ref)
    return failed('already_exists', `the volume ${spec.ref} is not a copy of ${ref}`);
  const problem =
    spec.host !== undefined && !isOn(ready, spec.host)
      ? `it is on ${ready.location}`
      : volume && changedSince(volume, spec.ref);
  return problem === undefined ? done(await showVolume(platform, ready)) : unfinished(problem);
}

async function completeCopy(
  platform: Platform,
  volume: Volume,
  copy: Volume,
  spec: VolumeSpec,
  cookie: string | null,
): Promise<Step<ObservedVolume>> {
  const [size, needed] = [bytesOf(copy.config['size']), bytesOf(volume.config['size'])];
  const problem =
    copy.config[mark.copyOf] !== volume.name
      ? `it is a copy of ${copy.config[mark.copyOf]}`
      : spec.host !== undefined && !isOn(copy, spec.host)
        ? `it is on ${copy.location}`
        : copy.content_type !== volume.content_type
          ? `its content type is ${copy.content_type}, not ${volume.content_type}`
          : size !== undefined && size !== needed
            ? `it has ${size} bytes instead of ${needed}`
            : changedSince(volume, spec.ref);
  if (problem !== undefined) return unfinished(problem);
  const marks = {
    ...settingsOf(volume),
    [mark.ref]: spec.ref,
    [mark.note]: spec.note,
    [mark.createdAt]: volume.config[mark.createdAt] ?? volume.created_at,
    [mark.createdBy]: volume.config[mark.createdBy],
  };
  if (!(await changeVolume(platform, copy, marks))) return underWay(cookie ?? 'copy');
  const made = await findVolume(platform, spec.ref);
  return made === undefined ? underWay('copied') : done(await showVolume(platform, made));
}

/** Why the copy may miss later writes to the original. Undefined if it does not. */
function changedSince(volume: Volume, copy: OwnerRef): string | undefined {
  const users = usersOf(volume);
  if (users.length > 0) return `the original is attached to ${users.join(', ')}`;
  return volume.config[mark.copiedTo] === copy ? undefined : 'the original was attached after it was copied';
}

/** The settings of a volume, except those that Incus and Berth record themselves. */
function settingsOf({ config }: Volume): Volume['config'] {
  return Object.fromEntries(
    Object.entries(config).filter(([key]) => !key.startsWith('volatile.') && !key.startsWith('user.berth.')),
  );
}
