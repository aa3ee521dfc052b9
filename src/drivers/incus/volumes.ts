import type {
  Listing,
  ObservedVolume,
  OwnerRef,
  Presence,
  Step,
  VolumeDriver,
  VolumeSpec,
} from '../../orchestrator/model/platform-driver.ts';
import { done, failed, pending } from '../../platform-model/steps.ts';
import { type IncusApi, type Instance, targetOf, type Volume } from './api.ts';
import { IncusRefusal, isConflict, isNotFound, toFailure } from './errors.ts';
import { pathOf } from './machines.ts';
import type { IncusConfig } from './options.ts';
import { type FleetReader, isJudgeable, NO_MEMBER, placeForVolume } from './placement.ts';
import {
  fromPlatformVolume,
  gib,
  hasPartOfMark,
  isName,
  isOurs,
  mark,
  toPlatformVolume,
  usersOf,
} from './translate.ts';

const POLL_MS = 200;

export interface VolumeDeps {
  api: IncusApi;
  options: IncusConfig;
  fleet: FleetReader;
}

/**
 * Custom volumes. One of a pool that is not shared lives on one member, and goes to the member of the machine that it is
 * attached to while it is attached to nothing else.
 */
export class Volumes implements VolumeDriver {
  readonly #deps: VolumeDeps;
  readonly #pool: string;

  constructor(deps: VolumeDeps) {
    this.#deps = deps;
    this.#pool = deps.options.volume_pool ?? deps.options.storage_pool;
  }

  async get(ref: OwnerRef): Promise<Presence<ObservedVolume>> {
    const volume = await this.#find(ref);
    return volume === undefined
      ? { answer: 'gone' }
      : { answer: 'observed', value: fromPlatformVolume(volume) };
  }

  async list(): Promise<Listing<ObservedVolume>> {
    const volumes = (await this.#deps.api.volumes(this.#pool)).filter(
      (one) => one.type === 'custom' && isOurs(one),
    );
    const names = [...new Set(volumes.map(({ name }) => name))];
    const items = names.map((name) => original(volumes.filter((one) => one.name === name)));
    return { answer: 'listed', items: items.filter((one) => one !== undefined).map(fromPlatformVolume) };
  }

  async create(spec: VolumeSpec): Promise<Step<ObservedVolume>> {
    if (!isName(spec.ref)) return failed('invalid', `${spec.ref} is no name that Incus takes`);
    const { api, options, fleet } = this.#deps;
    const known = await this.#find(spec.ref);
    if (known !== undefined) return done(fromPlatformVolume(known));
    const now = await fleet.read();
    if (!isJudgeable(now)) return failed('transient', NO_MEMBER);
    const host = placeForVolume(spec.datacenter, spec.sizeGb, now, options);
    if (host === undefined) return failed('capacity', 'no member has room for it');
    const body = toPlatformVolume(spec, options);
    await api.client.send('POST', this.#path(), { query: targetOf(host.name), body });
    const made = await this.#find(spec.ref);
    return made === undefined ? pending('make', POLL_MS) : done(fromPlatformVolume(made));
  }

  async attach(ref: OwnerRef, machine: OwnerRef, cookie: string | null): Promise<Step<null>> {
    const { api, options } = this.#deps;
    const [volume, instance] = await Promise.all([this.#find(ref), this.#machine(machine)]);
    if (volume === undefined) return failed('gone', `there is no volume ${ref}`);
    if (instance === undefined) return failed('gone', `there is no instance ${machine}`);
    if (instance.devices[ref] !== undefined) return done(null);
    if (!isAt(volume, instance)) return this.#move(volume, instance, cookie);
    const isMounted = options.volume_content === 'filesystem';
    const device = { type: 'disk', pool: this.#pool, source: ref, ...(isMounted && { path: `/mnt/${ref}` }) };
    await api.client.send('PATCH', pathOf(machine), { body: { devices: { [ref]: device } } });
    return done(null);
  }

  /**
   * To the member of the machine: Incus copies it there, the copy is marked as ours when it is complete, and then the
   * original is deleted. Which of two copies is the original is written down first; whatever interrupts it, the data is
   * in one that is complete and ours.
   */
  async #move(
    volume: Volume,
    { name: machine, location }: Instance,
    cookie: string | null,
  ): Promise<Step<null>> {
    const { api } = this.#deps;
    const { name, config, location: from } = volume;
    const users = usersOf(volume);
    if (users.length > 0)
      return failed(
        'conflict',
        `it is on ${from} with ${users.join(', ')}, and ${machine} is on ${location}`,
      );
    const path = this.#path(name);
    const operation = await this.#operation(cookie);
    if (operation !== undefined && operation.status_code >= 400) {
      const refusal = new IncusRefusal(operation.status_code, operation.err ?? 'the move failed', 'POST');
      const step = toFailure(refusal);
      return step.outcome === 'failed' ? { ...step, sideEffect: 'none' } : step;
    }
    if (await this.#isMoving(name)) return pending(cookie ?? 'move', POLL_MS);
    const copy = (await this.#named(name)).find((one) => one.location === location);
    const marks = { ...ownConfig(config), [mark.createdAt]: config[mark.createdAt] ?? volume.created_at };
    if (copy !== undefined && operation?.status_code === 200) {
      await api.client.send('PATCH', path, { query: targetOf(location), body: { config: marks } });
      await api.client.send('DELETE', path, { query: targetOf(from) });
      return pending('moved', POLL_MS);
    }
    // Of an earlier attempt: nobody knows any more whether it is complete.
    if (copy !== undefined && isCopyOf(copy, volume))
      await api.client.send('DELETE', path, { query: targetOf(location) });
    await api.client.send('PATCH', path, {
      query: targetOf(from),
      body: { config: { [mark.movingFrom]: from } },
    });
    const { operation: id } = await api.client.send('POST', this.#path(), {
      query: targetOf(location),
      body: {
        name,
        config: { [mark.copyOf]: name },
        source: { type: 'copy', name, pool: this.#pool, location: from },
      },
    });
    return pending(`move:${id}`, POLL_MS);
  }

  async detach(ref: OwnerRef, machine: OwnerRef): Promise<Step<null>> {
    const { api } = this.#deps;
    const instance = await this.#machine(machine);
    if (instance?.devices[ref] === undefined) return done(null);
    const found = await api.instanceToReplace(machine);
    if (found === undefined) return done(null);
    const { [ref]: _detached, ...devices } = found.value['devices'] as Record<string, unknown>;
    try {
      const body = { ...found.value, devices };
      const { operation } = await api.client.send('PUT', pathOf(machine), { body, etag: found.etag });
      return pending(`detach:${operation}`, POLL_MS);
    } catch (error) {
      // Something else of the machine has changed since it was read.
      if (isConflict(error)) return pending('detach', POLL_MS);
      throw error;
    }
  }

  async resize(ref: OwnerRef, sizeGb: number): Promise<Step<ObservedVolume>> {
    const volume = await this.#find(ref);
    if (volume === undefined) return failed('gone', `there is no volume ${ref}`);
    const shown = fromPlatformVolume(volume);
    if (shown.sizeGb === sizeGb) return done(shown);
    if ((shown.sizeGb ?? 0) > sizeGb) return failed('invalid', `it has ${shown.sizeGb} GB already`);
    const { api, options } = this.#deps;
    if (options.volume_content === 'block' && usersOf(volume).length > 0)
      return failed('conflict', 'a block volume grows only while it is attached to nothing');
    const query = targetOf(volume.location);
    await api.client.send('PATCH', this.#path(ref), { query, body: { config: { size: gib(sizeGb) } } });
    return done({ ...shown, sizeGb });
  }

  async destroy(ref: OwnerRef): Promise<Step<null>> {
    const volume = await this.#find(ref);
    if (volume === undefined) return done(null);
    for (const machine of usersOf(volume)) {
      const step = await this.detach(ref, machine);
      if (step.outcome !== 'done') return step;
    }
    if (await this.#isMoving(ref)) return pending('destroy', POLL_MS);
    for (const { location } of await this.#all(ref)) {
      try {
        await this.#deps.api.client.send('DELETE', this.#path(ref), { query: targetOf(location) });
      } catch (error) {
        if (!isNotFound(error) && !isConflict(error)) throw error;
      }
    }
    return (await this.#all(ref)).length === 0 ? done(null) : pending('destroy', POLL_MS);
  }

  /** On every member, ours or not. */
  async #named(ref: OwnerRef): Promise<Volume[]> {
    const volumes = await this.#deps.api.volumes(this.#pool);
    return volumes.filter((one) => one.type === 'custom' && one.name === ref);
  }

  /** Ours, and what a move has copied of it so far. */
  async #all(ref: OwnerRef): Promise<Volume[]> {
    return (await this.#named(ref)).filter((one) => isOurs(one) || one.config[mark.copyOf] === ref);
  }

  async #find(ref: OwnerRef): Promise<Volume | undefined> {
    const named = await this.#named(ref);
    const found = original(named.filter(isOurs));
    if (found === undefined && named.some(hasPartOfMark))
      throw new IncusRefusal(409, `the volume ${ref} has only a part of Berth's mark (user.berth.*)`, 'GET');
    return found;
  }

  async #machine(ref: OwnerRef): Promise<Instance | undefined> {
    const { api } = this.#deps;
    const instance = isName(ref) ? await api.instance(ref) : undefined;
    if (instance === undefined) await api.assertProject();
    return instance !== undefined && isOurs(instance) ? instance : undefined;
  }

  async #operation(cookie: string | null) {
    const id = cookie?.split(':')[1];
    return id === undefined || !/^[0-9a-f-]{36}$/.test(id) ? undefined : this.#deps.api.operation(id);
  }

  async #isMoving(ref: OwnerRef): Promise<boolean> {
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

/** Of the copies that an interrupted move leaves: the one that it began with, while that is there. */
function original(copies: readonly Volume[]): Volume | undefined {
  return copies.find(({ location, config }) => config[mark.movingFrom] === location) ?? copies[0];
}

function isCopyOf(copy: Volume, { name }: Volume): boolean {
  return copy.config[mark.copyOf] === name || isOurs(copy);
}

/** What Incus notes of a volume by itself stays behind. */
function ownConfig(config: Volume['config']): Volume['config'] {
  return Object.fromEntries(Object.entries(config).filter(([key]) => !key.startsWith('volatile.')));
}

/** A volume of a shared pool is on no member. */
function isAt({ location }: Volume, instance: Instance): boolean {
  return location === '' || location === 'none' || location === instance.location;
}
