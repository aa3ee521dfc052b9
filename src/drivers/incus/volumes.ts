import type { DestroyOrder } from '../../orchestrator/model/destroy-order.ts';
import type {
  Call,
  Listing,
  ObservedVolume,
  OwnerRef,
  Placing,
  Presence,
  Step,
  VolumeDriver,
  VolumeSpec,
} from '../../orchestrator/model/platform-driver.ts';
import { done, failed, pending } from '../../platform-model/steps.ts';
import { type Instance, targetOf, type Volume } from './api.ts';
import { IncusRefusal, isConflict, isNotFound } from './errors.ts';
import { pathOf, unfinished } from './operations.ts';
import {
  type FleetReader,
  isJudgeable,
  NO_MEMBER,
  NO_ROOM,
  placesForVolume,
  toPlacing,
} from './placement.ts';
import {
  deviceOf,
  gib,
  hostOf,
  isMarked,
  isName,
  isOurs,
  mark,
  refOf,
  toPlatformVolume,
  usersOf,
} from './translate.ts';
import { VolumeCopies } from './volume-copies.ts';
import {
  isIncomplete,
  isOfEarlierMove,
  isOn,
  original,
  type VolumeRecordDeps,
  VolumeRecords,
} from './volume-records.ts';

const POLL_MS = 200;

export interface VolumeDeps extends VolumeRecordDeps {
  fleet: FleetReader;
}

/** Custom volumes. In a pool that is not shared, a volume is on one member and moves by a copy under another name. */
export class Volumes implements VolumeDriver {
  readonly #deps: VolumeDeps;
  readonly #records: VolumeRecords;
  readonly #copies: VolumeCopies;

  constructor(deps: VolumeDeps) {
    this.#deps = deps;
    this.#records = new VolumeRecords(deps);
    this.#copies = new VolumeCopies(deps.api, this.#records);
  }

  async get(ref: OwnerRef): Promise<Presence<ObservedVolume>> {
    const volume = await this.#records.find(ref);
    if (volume === undefined) return { answer: 'gone' };
    return { answer: 'observed', value: await this.#records.show(volume) };
  }

  async list(): Promise<Listing<ObservedVolume>> {
    const volumes = await this.#records.all();
    const groups = [...Map.groupBy(volumes.filter(isOurs), ({ name }) => name).values()];
    const items = groups.map(original).filter((one) => one !== undefined);
    const others = volumes.filter((one) => !items.includes(one));
    return {
      answer: 'listed',
      items: await this.#records.showAll(items),
      copies: others
        .filter((one) => isMarked(one) && !isOfEarlierMove(one))
        .map((one) => ({ ref: refOf(one), name: one.name, ...hostField(one) })),
      leftovers: others
        .filter((one) => isIncomplete(one) || isOfEarlierMove(one))
        .map((one) => ({
          ref: one.name,
          detail: `${isIncomplete(one) ? 'an incomplete' : 'a'} copy of the volume ${one.config[mark.copyOf]}, made to move it`,
          ...hostField(one),
        })),
    };
  }

  async place(spec: VolumeSpec, avoidHosts: readonly string[]): Promise<Placing> {
    const { options, fleet } = this.#deps;
    const now = await fleet.read();
    if (!isJudgeable(now)) return { answer: 'unknown', reason: NO_MEMBER };
    const counted = [...new Set(now.volumes.map(({ name }) => name))];
    return toPlacing(placesForVolume({ ...spec, avoidHosts }, now, options), now, counted, spec.host);
  }

  async create(spec: VolumeSpec, _cookie: string | null, call?: Call): Promise<Step<ObservedVolume>> {
    if (!isName(spec.ref)) return failed('invalid', `${spec.ref} is not a valid Incus name`);
    const { api, options, fleet } = this.#deps;
    const known = await this.#records.find(spec.ref);
    if (known !== undefined) return done(await this.#records.show(known));
    if ((await this.#records.named(spec.ref)).some(isIncomplete))
      return unfinished('an incomplete copy of another volume has its name');
    const now = await fleet.read();
    if (!isJudgeable(now)) return failed('transient', NO_MEMBER);
    const [place] = placesForVolume(spec, now, options);
    if (place === undefined) return failed('capacity', NO_ROOM);
    const body = toPlatformVolume(spec, options);
    await api.client.send('POST', this.#records.path(), { query: targetOf(place.host.name), body, call });
    const made = await this.#records.find(spec.ref).catch(() => undefined);
    return made === undefined ? pending('make', POLL_MS) : done(await this.#records.show(made));
  }

  async attach(ref: OwnerRef, machine: OwnerRef, _cookie: string | null, call?: Call): Promise<Step<null>> {
    const { api, options } = this.#deps;
    const [volume, instance] = await Promise.all([this.#records.find(ref), this.#machine(machine)]);
    if (volume === undefined) return failed('gone', `there is no volume ${ref}`);
    if (instance === undefined) return failed('gone', `there is no instance ${machine}`);
    if (deviceFor(instance, ref, this.#records.pool) !== undefined) return done(null);
    if (!isOn(volume, instance.location))
      return failed('elsewhere', `it is on ${volume.location}, and ${machine} is on ${instance.location}`);
    // Earlier copies miss everything that is written from now on.
    if (volume.config[mark.copiedTo] && !(await this.#records.change(volume, { [mark.copiedTo]: '' }, call)))
      return pending('attach', POLL_MS);
    const name = deviceOf(ref);
    if (instance.devices[name] !== undefined)
      return failed('conflict', `${machine} has another device ${name}`);
    const isMounted = options.volume_content === 'filesystem';
    const device = {
      type: 'disk',
      pool: this.#records.pool,
      source: ref,
      ...(isMounted && { path: `/mnt/${name}` }),
    };
    const body = { devices: { [name]: device }, config: changeOf(ref, call) };
    try {
      await api.client.send('PATCH', pathOf(instance.name), { body, etag: instance.etag, call });
      return done(null);
    } catch (error) {
      // Another part of the machine has changed since it was read.
      if (isConflict(error)) return pending('attach', POLL_MS);
      throw error;
    }
  }

  async detach(ref: OwnerRef, machine: OwnerRef, _cookie: string | null, call?: Call): Promise<Step<null>> {
    const instance = await this.#machine(machine);
    return instance === undefined ? done(null) : this.#detach(ref, instance.name, call);
  }

  async #detach(ref: OwnerRef, name: string, call?: Call): Promise<Step<null>> {
    const { api } = this.#deps;
    const found = await api.instanceToReplace(name);
    if (found === undefined) return done(null);
    const all = (found.value['devices'] ?? {}) as Instance['devices'];
    const device = deviceFor({ devices: all }, ref, this.#records.pool);
    if (device === undefined) return done(null);
    const { [device]: _detached, ...devices } = all;
    try {
      const config = { ...(found.value['config'] as Instance['config'] | null), ...changeOf(ref, call) };
      const body = { ...found.value, devices, config };
      const { operation } = await api.client.send('PUT', pathOf(name), { body, etag: found.etag, call });
      return pending(`detach:${operation}`, POLL_MS);
    } catch (error) {
      if (isConflict(error)) return pending('detach', POLL_MS);
      throw error;
    }
  }

  async resize(
    ref: OwnerRef,
    sizeGb: number,
    _cookie: string | null,
    call?: Call,
  ): Promise<Step<ObservedVolume>> {
    const { options } = this.#deps;
    const volume = await this.#records.find(ref);
    if (volume === undefined) return failed('gone', `there is no volume ${ref}`);
    const shown = await this.#records.show(volume);
    if (shown.sizeGb === sizeGb) return done(shown);
    if ((shown.sizeGb ?? 0) > sizeGb) return failed('invalid', `it already has ${shown.sizeGb} GB`);
    if (options.volume_content === 'block' && usersOf(volume).length > 0)
      return failed('conflict', 'a block volume grows only while it is not attached');
    const changes = { size: gib(sizeGb), ...(volume.config[mark.copiedTo] && { [mark.copiedTo]: '' }) };
    const isAsRead = await this.#records.change(volume, changes, call);
    return isAsRead ? done({ ...shown, sizeGb }) : pending('resize', POLL_MS);
  }

  copy(ref: OwnerRef, spec: VolumeSpec, cookie: string | null, call?: Call): Promise<Step<ObservedVolume>> {
    return this.#copies.copy(ref, spec, cookie, call);
  }

  /** Destroys every volume of Berth's with exactly this name, and incomplete copies. */
  async destroy(
    ref: OwnerRef,
    _cookie: string | null,
    order: DestroyOrder,
    call?: Call,
  ): Promise<Step<null>> {
    const ours = async () =>
      (await this.#records.named(ref)).filter((one) => isOurs(one) || isIncomplete(one));
    // Throws for a volume with only part of the mark, so that it is not destroyed.
    await this.#records.find(ref);
    const found = await ours();
    if (found.length === 0) return done(null);
    for (const name of new Set(found.flatMap(usersOf))) {
      const step = await this.#detach(ref, name, call);
      if (step.outcome !== 'done') return step;
    }
    if (await this.#records.isBusy(ref)) return pending('destroy', POLL_MS);
    for (const { location } of found) {
      try {
        const query = targetOf(location);
        await this.#deps.api.client.send('DELETE', this.#records.path(ref), { query, order, call });
      } catch (error) {
        if (!isNotFound(error) && !isConflict(error)) throw error;
      }
    }
    return (await ours()).length === 0 ? done(null) : pending('destroy', POLL_MS);
  }

  /** @throws {Error} if the machine's existence is unknown */
  async #machine(ref: OwnerRef): Promise<Instance | undefined> {
    const found = await this.#deps.finder.find(ref);
    if (found.is === 'unknown') throw new IncusRefusal(503, found.reason, 'GET');
    if (found.is === 'ours' && found.isMoving) throw new IncusRefusal(503, `Incus is moving ${ref}`, 'GET');
    if (found.is !== 'ours') await this.#deps.api.assertProject();
    return found.is === 'ours' ? found.instance : undefined;
  }
}

/** Makes the tag differ, even if a machine was changed twice and is as it was before. */
function changeOf(ref: OwnerRef, call: Call | undefined): Instance['config'] {
  return call === undefined ? {} : { [mark.change]: `${call.fence} ${ref}` };
}

/** The name of the volume's device. */
function deviceFor({ devices }: Pick<Instance, 'devices'>, ref: OwnerRef, pool: string): string | undefined {
  return Object.entries(devices).find(
    ([, { type, source, pool: of }]) =>
      type === 'disk' && source === ref && (of === undefined || of === pool),
  )?.[0];
}

function hostField(volume: Volume): { host?: string } {
  const host = hostOf(volume);
  return host === undefined ? {} : { host };
}
