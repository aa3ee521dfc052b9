import { isDeepStrictEqual } from 'node:util';
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
import { type IncusApi, type Instance, targetOf, type Volume } from './api.ts';
import { IncusRefusal, isConflict, isNotFound } from './errors.ts';
import type { Finder } from './finder.ts';
import { Operations, pathOf, unfinished } from './operations.ts';
import type { IncusConfig } from './options.ts';
import {
  type FleetReader,
  isJudgeable,
  NO_MEMBER,
  NO_ROOM,
  placesForVolume,
  toPlacing,
} from './placement.ts';
import {
  bytesOf,
  deviceOf,
  fromPlatformVolume,
  gib,
  hasPartOfMark,
  hostOf,
  isMarked,
  isName,
  isOurs,
  mark,
  refOf,
  toPlatformVolume,
  usersOf,
} from './translate.ts';

const POLL_MS = 200;

export interface VolumeDeps {
  api: IncusApi;
  options: IncusConfig;
  fleet: FleetReader;
  finder: Finder;
}

/** Custom volumes. One of a pool that is not shared lives on one member: it is moved by copying it under another name. */
export class Volumes implements VolumeDriver {
  readonly #deps: VolumeDeps;
  readonly #operations: Operations;
  readonly #pool: string;

  constructor(deps: VolumeDeps) {
    this.#deps = deps;
    this.#operations = new Operations(deps.api);
    this.#pool = deps.options.volume_pool ?? deps.options.storage_pool;
  }

  async get(ref: OwnerRef): Promise<Presence<ObservedVolume>> {
    const volume = await this.#find(ref);
    if (volume === undefined) return { answer: 'gone' };
    return { answer: 'observed', value: await this.#show(volume) };
  }

  async list(): Promise<Listing<ObservedVolume>> {
    const volumes = await this.#all();
    const groups = [...Map.groupBy(volumes.filter(isOurs), ({ name }) => name).values()];
    const items = groups.map(original).filter((one) => one !== undefined);
    const users = await this.#deps.finder.refsOf(items.flatMap(usersOf));
    return {
      answer: 'listed',
      items: items.map((one) => fromPlatformVolume(one, machinesOf(one, users))),
      copies: volumes
        .filter((one) => isMarked(one) && !items.includes(one))
        .map((one) => ({ ref: refOf(one), name: one.name, ...hostField(one) })),
      leftovers: volumes
        .filter((one) => isIncomplete(one))
        .map((one) => ({
          ref: one.name,
          detail: `an incomplete copy of the volume ${one.config[mark.copyOf]}`,
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
    if (!isName(spec.ref)) return failed('invalid', `${spec.ref} is no name that Incus takes`);
    const { api, options, fleet } = this.#deps;
    const known = await this.#find(spec.ref);
    if (known !== undefined) return done(await this.#show(known));
    if ((await this.#named(spec.ref)).some(isIncomplete))
      return unfinished('an incomplete copy of another volume has its name');
    const now = await fleet.read();
    if (!isJudgeable(now)) return failed('transient', NO_MEMBER);
    const [place] = placesForVolume(spec, now, options);
    if (place === undefined) return failed('capacity', NO_ROOM);
    const body = toPlatformVolume(spec, options);
    await api.client.send('POST', this.#path(), { query: targetOf(place.host.name), body, call });
    const made = await this.#find(spec.ref);
    return made === undefined ? pending('make', POLL_MS) : done(await this.#show(made));
  }

  async attach(ref: OwnerRef, machine: OwnerRef, _cookie: string | null, call?: Call): Promise<Step<null>> {
    const { api, options } = this.#deps;
    const [volume, instance] = await Promise.all([this.#find(ref), this.#machine(machine)]);
    if (volume === undefined) return failed('gone', `there is no volume ${ref}`);
    if (instance === undefined) return failed('gone', `there is no instance ${machine}`);
    if (deviceFor(instance, ref, this.#pool) !== undefined) return done(null);
    if (!isOn(volume, instance.location))
      return failed('elsewhere', `it is on ${volume.location}, and ${machine} is on ${instance.location}`);
    // What is written from now on is in no copy that was made before.
    if (volume.config[mark.copiedTo] && !(await this.#change(volume, { [mark.copiedTo]: '' }, call)))
      return pending('attach', POLL_MS);
    const name = deviceOf(ref);
    if (instance.devices[name] !== undefined)
      return failed('conflict', `${machine} has another device ${name}`);
    const isMounted = options.volume_content === 'filesystem';
    const device = {
      type: 'disk',
      pool: this.#pool,
      source: ref,
      ...(isMounted && { path: `/mnt/${name}` }),
    };
    const body = { devices: { [name]: device } };
    try {
      await api.client.send('PATCH', pathOf(instance.name), { body, etag: instance.etag, call });
      return done(null);
    } catch (error) {
      // Something else of the machine has changed since it was read.
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
    const device = deviceFor({ devices: all }, ref, this.#pool);
    if (device === undefined) return done(null);
    const { [device]: _detached, ...devices } = all;
    try {
      const body = { ...found.value, devices };
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
    const volume = await this.#find(ref);
    if (volume === undefined) return failed('gone', `there is no volume ${ref}`);
    const shown = await this.#show(volume);
    if (shown.sizeGb === sizeGb) return done(shown);
    if ((shown.sizeGb ?? 0) > sizeGb) return failed('invalid', `it has ${shown.sizeGb} GB already`);
    if (options.volume_content === 'block' && usersOf(volume).length > 0)
      return failed('conflict', 'a block volume grows only while it is attached to nothing');
    const changes = { size: gib(sizeGb), ...(volume.config[mark.copiedTo] && { [mark.copiedTo]: '' }) };
    const isAsRead = await this.#change(volume, changes, call);
    return isAsRead ? done({ ...shown, sizeGb }) : pending('resize', POLL_MS);
  }

  /**
   * To the member `spec.host`, under the name `spec.ref`. It is ours only once Incus has said that the copy succeeded, and
   * it has the size and the content of the original, to which nothing is attached still. Nothing is removed.
   */
  async copy(
    ref: OwnerRef,
    spec: VolumeSpec,
    cookie: string | null,
    call?: Call,
  ): Promise<Step<ObservedVolume>> {
    if (!isName(spec.ref) || spec.ref === ref)
      return failed('invalid', `a copy of ${ref} cannot be called ${spec.ref}`);
    const [volume, named] = [await this.#find(ref), await this.#named(spec.ref)];
    const ready = this.#judge(spec.ref, named);
    if (ready !== undefined) return this.#judgeCopy(volume, ready, ref, spec);
    const operation = await this.#operations.of(cookie);
    const isRunning = operation !== undefined && operation.status_code < 200;
    if (isRunning || (await this.#isBusy(spec.ref))) return pending(cookie ?? 'copy', POLL_MS);
    const copy = named.find(isIncomplete);
    if (copy !== undefined)
      return operation?.status_code === 200 && volume !== undefined
        ? this.#complete(volume, copy, spec, cookie, call)
        : unfinished('a copy was interrupted, and what there is of it may be incomplete');
    if (named.length > 0)
      return failed('already_exists', `a volume ${spec.ref} is there, and it is not Berth's`);
    if (operation !== undefined && operation.status_code >= 400)
      return (await this.#operations.failureOf(cookie)) ?? failed('transient', 'the copy failed');
    if (volume === undefined) return failed('gone', `there is no volume ${ref}`);
    const users = usersOf(volume);
    if (users.length > 0) return failed('conflict', `it is attached to ${users.join(', ')}`);
    if (!(await this.#change(volume, { [mark.copiedTo]: spec.ref }, call))) return pending('copy', POLL_MS);
    const { operation: id } = await this.#deps.api.client.send('POST', this.#path(), {
      query: targetOf(spec.host ?? volume.location),
      body: {
        name: spec.ref,
        ...(volume.content_type !== undefined && { content_type: volume.content_type }),
        config: { ...settingsOf(volume), [mark.copyOf]: ref },
        source: { type: 'copy', name: ref, pool: this.#pool, location: volume.location },
      },
      call,
    });
    return pending(`copy:${id}`, POLL_MS);
  }

  /** One with our mark is complete: but it is of use only while nothing was written to the original since. */
  async #judgeCopy(
    volume: Volume | undefined,
    ready: Volume,
    ref: OwnerRef,
    spec: VolumeSpec,
  ): Promise<Step<ObservedVolume>> {
    if (ready.config[mark.copyOf] !== ref)
      return failed('already_exists', `the volume ${spec.ref} is no copy of ${ref}`);
    const problem =
      spec.host !== undefined && !isOn(ready, spec.host)
        ? `it is on ${ready.location}`
        : volume && changedSince(volume, spec.ref);
    return problem === undefined ? done(await this.#show(ready)) : unfinished(problem);
  }

  /** The copy succeeded: it is looked at, and gets our mark. */
  async #complete(
    volume: Volume,
    copy: Volume,
    spec: VolumeSpec,
    cookie: string | null,
    call?: Call,
  ): Promise<Step<ObservedVolume>> {
    const [size, needed] = [bytesOf(copy.config['size']), bytesOf(volume.config['size'])];
    const problem =
      copy.config[mark.copyOf] !== volume.name
        ? `it is a copy of ${copy.config[mark.copyOf]}`
        : spec.host !== undefined && !isOn(copy, spec.host)
          ? `it is on ${copy.location}`
          : copy.content_type !== volume.content_type
            ? `it is ${copy.content_type}, and not ${volume.content_type}`
            : size !== undefined && size !== needed
              ? `it has ${size} bytes, and not ${needed}`
              : changedSince(volume, spec.ref);
    if (problem !== undefined) return unfinished(problem);
    const marks = {
      ...settingsOf(volume),
      [mark.ref]: spec.ref,
      [mark.note]: spec.note,
      [mark.createdAt]: volume.config[mark.createdAt] ?? volume.created_at,
      [mark.createdBy]: volume.config[mark.createdBy],
    };
    if (!(await this.#change(copy, marks, call))) return pending(cookie ?? 'copy', POLL_MS);
    const made = await this.#find(spec.ref);
    return made === undefined ? pending('copied', POLL_MS) : done(await this.#show(made));
  }

  /** Every volume of exactly that name that is ours, and what there is of a copy. */
  async destroy(
    ref: OwnerRef,
    _cookie: string | null,
    order: DestroyOrder,
    call?: Call,
  ): Promise<Step<null>> {
    const ours = async () => (await this.#named(ref)).filter((one) => isOurs(one) || isIncomplete(one));
    await this.#find(ref);
    const found = await ours();
    if (found.length === 0) return done(null);
    for (const name of new Set(found.flatMap(usersOf))) {
      const step = await this.#detach(ref, name, call);
      if (step.outcome !== 'done') return step;
    }
    if (await this.#isBusy(ref)) return pending('destroy', POLL_MS);
    for (const { location } of found) {
      try {
        const query = targetOf(location);
        await this.#deps.api.client.send('DELETE', this.#path(ref), { query, order, call });
      } catch (error) {
        if (!isNotFound(error) && !isConflict(error)) throw error;
      }
    }
    return (await ours()).length === 0 ? done(null) : pending('destroy', POLL_MS);
  }

  async #all(): Promise<Volume[]> {
    return (await this.#deps.api.volumes(this.#pool)).filter(({ type }) => type === 'custom');
  }

  /** On every member, ours or not. */
  async #named(ref: OwnerRef): Promise<Volume[]> {
    return (await this.#all()).filter(({ name }) => name === ref);
  }

  async #find(ref: OwnerRef): Promise<Volume | undefined> {
    return this.#judge(ref, await this.#named(ref));
  }

  #judge(ref: OwnerRef, named: readonly Volume[]): Volume | undefined {
    const found = original(named.filter(isOurs));
    if (found === undefined && named.some(hasPartOfMark))
      throw new IncusRefusal(409, `the volume ${ref} has only a part of Berth's mark (user.berth.*)`, 'GET');
    return found;
  }

  async #show(volume: Volume): Promise<ObservedVolume> {
    const users = usersOf(volume);
    return fromPlatformVolume(
      volume,
      machinesOf(volume, users.length === 0 ? undefined : await this.#deps.finder.refsOf(users)),
    );
  }

  /** @throws {Error} if it cannot be told whether it is there */
  async #machine(ref: OwnerRef): Promise<Instance | undefined> {
    const found = await this.#deps.finder.find(ref);
    if (found.is === 'unknown') throw new IncusRefusal(503, found.reason, 'GET');
    if (found.is !== 'ours') await this.#deps.api.assertProject();
    return found.is === 'ours' ? found.instance : undefined;
  }

  /** Changes what is configured of it. False: that was not as it had been read. */
  async #change({ name, location, config }: Volume, changes: object, call?: Call): Promise<boolean> {
    const { api } = this.#deps;
    const found = await api.volume(this.#pool, name, location);
    if (found === undefined || !isDeepStrictEqual(found.value.config, config)) return false;
    try {
      const options = { query: targetOf(location), body: { config: changes }, etag: found.etag, call };
      await api.client.send('PATCH', this.#path(name), options);
      return true;
    } catch (error) {
      if (isConflict(error)) return false;
      throw error;
    }
  }

  /** Whether Incus copies from it or to it. */
  async #isBusy(ref: OwnerRef): Promise<boolean> {
    const path = this.#path(ref);
    return (await this.#deps.api.operations()).some(
      ({ status_code: code, resources }) =>
        code < 200 &&
        Object.values(resources ?? {}).some((paths) => paths?.some((one) => one.split('?')[0] === path)),
    );
  }

  #path(ref?: OwnerRef): string {
    return `/1.0/storage-pools/${this.#pool}/volumes/custom${ref === undefined ? '' : `/${ref}`}`;
  }
}

/**
 * Of several with one name: the one that a move of an earlier Berth began with, or else one that no such move has made: one
 * that is in use, or the oldest. An earlier Berth copied a volume under its own name, and gave the copy its mark before the end.
 */
function original(ours: readonly Volume[]): Volume | undefined {
  const oldest = ours.toSorted((a, b) => Date.parse(a.created_at) - Date.parse(b.created_at));
  return (
    oldest.find(({ location, config }) => config[mark.movingFrom] === location) ??
    oldest.find((one) => one.config[mark.copyOf] !== one.name && usersOf(one).length > 0) ??
    oldest.find(({ name, config }) => config[mark.copyOf] !== name) ??
    oldest[0]
  );
}

/** Why a copy of it under that name may lack what was written to it since. */
function changedSince(volume: Volume, copy: OwnerRef): string | undefined {
  const users = usersOf(volume);
  if (users.length > 0) return `the original is attached to ${users.join(', ')}`;
  return volume.config[mark.copiedTo] === copy ? undefined : 'the original was attached after it was copied';
}

/** Nothing says that the copy is complete. */
function isIncomplete(volume: Volume): boolean {
  return volume.config[mark.copyOf] !== undefined && !isMarked(volume);
}

/** What Incus notes of a volume by itself, and what Berth has, stays behind. */
function settingsOf({ config }: Volume): Volume['config'] {
  return Object.fromEntries(
    Object.entries(config).filter(([key]) => !key.startsWith('volatile.') && !key.startsWith('user.berth.')),
  );
}

/** The name of the device that is the volume. */
function deviceFor({ devices }: Pick<Instance, 'devices'>, ref: OwnerRef, pool: string): string | undefined {
  return Object.entries(devices).find(
    ([, { type, source, pool: of }]) =>
      type === 'disk' && source === ref && (of === undefined || of === pool),
  )?.[0];
}

function machinesOf(volume: Volume, refs: ReadonlyMap<string, OwnerRef> | undefined): OwnerRef[] {
  return usersOf(volume).map((name) => refs?.get(name) ?? name);
}

function hostField(volume: Volume): { host?: string } {
  const host = hostOf(volume);
  return host === undefined ? {} : { host };
}

/** A volume of a shared pool is on every member. */
function isOn(volume: Volume, host: string): boolean {
  return (hostOf(volume) ?? host) === host;
}
