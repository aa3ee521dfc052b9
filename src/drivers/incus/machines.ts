import type { Catalog } from '../../orchestrator/catalog/catalog.ts';
import type {
  Endpoint,
  Listing,
  MachineSpec,
  ObservedMachine,
  OwnerRef,
  Presence,
  Step,
} from '../../orchestrator/model/platform-driver.ts';
import { done, failed, pending } from '../../platform-model/steps.ts';
import { type Forward, type IncusApi, type Instance, type Operation, targetOf } from './api.ts';
import { IncusRefusal, isConflict, isNotFound, toFailure } from './errors.ts';
import { Forwards, NoPortLeft } from './forwards.ts';
import { Gpus } from './gpus.ts';
import type { InstanceReader } from './instances.ts';
import type { IncusConfig, IncusOffer } from './options.ts';
import { type FleetReader, isJudgeable, NO_MEMBER, offerOf, placeFor } from './placement.ts';
import {
  addressOf,
  fromPlatform,
  hasPartOfMark,
  imageOf,
  isFrozen,
  isName,
  isOurs,
  isRunning,
  isStopped,
  isUnknown,
  mark,
  phases,
  rootOf,
  SSH_PORT,
  toPlatform,
} from './translate.ts';

const POLL_MS = 300;
/** How long a create waits for Incus to write the record of what it makes. */
const SHOWN_WITHIN_MS = 3_000;
const SHOWN_POLL_MS = 50;

/** What is there under a name. */
type Found =
  | { is: 'ours'; instance: Instance }
  /** Incus is about to write its record. */
  | { is: 'coming'; since: string }
  | { is: 'foreign' }
  | { is: 'absent' }
  | { is: 'unknown'; reason: string };

export interface MachineDeps {
  api: IncusApi;
  instances: InstanceReader;
  options: IncusConfig;
  catalog: Catalog;
  fleet: FleetReader;
  now: () => number;
  wait: (ms: number) => Promise<void>;
}

/** The machines of a platform: instances of Incus that carry our mark. */
export class Machines {
  readonly #deps: MachineDeps;
  readonly #forwards: Forwards | undefined;
  readonly #gpus: Gpus;
  #placing: Promise<unknown> = Promise.resolve();

  constructor(deps: MachineDeps) {
    this.#deps = deps;
    this.#gpus = new Gpus(deps);
    const { port_forwards: settings } = deps.options;
    this.#forwards = settings && new Forwards(deps.api, settings);
  }

  async get(ref: OwnerRef): Promise<Presence<ObservedMachine>> {
    const found = await this.#find(ref);
    switch (found.is) {
      case 'unknown':
        return { answer: 'unknown', reason: found.reason };
      case 'coming':
        return { answer: 'observed', value: { ref, power: 'building', createdAt: Date.parse(found.since) } };
      case 'ours':
        await this.#restoreForwards(found.instance);
        return { answer: 'observed', value: await this.#show(found.instance) };
      case 'foreign':
      case 'absent':
        return { answer: 'gone', hosts: await this.#deps.api.hosts() };
    }
  }

  /** Another Berth that changed the forwards of the same address at the same moment may have removed them. */
  async #restoreForwards(instance: Instance): Promise<void> {
    if (instance.config[mark.phase] !== phases.created || !isRunning(instance)) return;
    const offer = this.#offerOf(instance);
    try {
      await this.#forwards?.ensure(instance, offer.network ?? this.#deps.options.network, offer);
    } catch (error) {
      if (!(error instanceof NoPortLeft) && !isConflict(error)) throw error;
    }
  }

  /** What is on a member that does not answer is left out: its absence proves nothing, and a `get` of it is unknown. */
  async list(): Promise<Listing<ObservedMachine>> {
    const { api, instances: reader } = this.#deps;
    const [{ instances, names, silent }, hosts, ...forwards] = await Promise.all([
      reader.read({ state: true }),
      api.hosts(),
      ...(this.#forwards === undefined ? [] : this.#networks().map((network) => api.forwards(network))),
    ]);
    const known = instances.filter((instance) => isOurs(instance) && !isUnknown(instance));
    // Whoever fails to sweep does it with the next listing.
    void this.#sweepForwards(forwards.flat(), names).catch(() => undefined);
    return {
      answer: 'listed',
      items: known.map((instance) => fromPlatform(instance, this.#endpointOf(instance, forwards.flat()))),
      hosts: { answered: hosts.answered.filter((name) => !silent.has(name)), silent: [...silent] },
    };
  }

  /** Takes back the ports that a call which came late has forwarded to a machine that is gone. */
  async #sweepForwards(forwards: readonly Forward[], names: readonly string[]): Promise<void> {
    for (const ref of this.#forwards?.strays(forwards, names) ?? [])
      if ((await this.#find(ref)).is === 'absent') await this.#removeForwards(ref);
  }

  #networks(): string[] {
    const { options, catalog } = this.#deps;
    const ofOffers = [...catalog.offers.values()].flatMap((one) => offerOf(one).network ?? []);
    return [...new Set([options.network, ...ofOffers])];
  }

  async create(spec: MachineSpec, cookie: string | null): Promise<Step<ObservedMachine>> {
    if (!isName(spec.ref)) return failed('invalid', `${spec.ref} is no name that Incus takes`);
    const found = await this.#find(spec.ref);
    switch (found.is) {
      case 'unknown':
        return failed('transient', found.reason);
      case 'foreign':
        return failed('already_exists', `an instance ${spec.ref} is there, and it is not Berth's`);
      case 'coming':
        return pending('make', POLL_MS);
      case 'absent':
        return (await this.#failureOf(cookie)) ?? this.#make(spec);
      case 'ours':
        return this.#goOn(spec, found.instance, cookie);
    }
  }

  /** From what there is of it to a machine that runs. */
  async #goOn(spec: MachineSpec, instance: Instance, cookie: string | null): Promise<Step<ObservedMachine>> {
    const phase = instance.config[mark.phase];
    if (phase === undefined) return this.#afterMaking(instance, cookie);
    if (isStopped(instance)) {
      const problem = await this.#failureOf(cookie, 'boot');
      if (problem !== undefined) return problem;
      return this.#boot(instance);
    }
    if (!isRunning(instance)) return pending(cookie ?? 'boot', POLL_MS);
    const step = await this.#reached(instance, offerOf(this.#deps.catalog.offers.get(spec.offerId)));
    if (step.outcome !== 'done' || phase === phases.created) return step;
    await this.#deps.api.client.send('PATCH', pathOf(instance.name), {
      body: { config: { [mark.phase]: phases.created } },
    });
    return done({ ...step.value, power: 'running' });
  }

  /** Its first start, once its GPUs are its own. Where others have them, it is made anew with what is left. */
  async #boot(instance: Instance): Promise<Step<ObservedMachine>> {
    const { name, config } = instance;
    const verdict = await this.#gpus.settle(instance);
    if (verdict === 'held') return this.#setPower(name, { action: 'start' }, 'boot');
    if (verdict === 'lost' && config[mark.phase] !== phases.created) await this.#delete(name);
    return pending('make', POLL_MS);
  }

  async #make(spec: MachineSpec): Promise<Step<ObservedMachine>> {
    const { api, options, catalog, fleet } = this.#deps;
    const offer = offerOf(catalog.offers.get(spec.offerId));
    const run = async (): Promise<Step<ObservedMachine>> => {
      const now = await fleet.read();
      if (!isJudgeable(now)) return failed('transient', NO_MEMBER);
      const place = placeFor(spec, now, offer, options);
      if (place === undefined) return failed('capacity', 'no member has room for it');
      const { alias } = imageOf(spec.image, offer, options);
      if ((await api.image(alias)) === undefined)
        return failed('image_missing', `there is no image ${alias}`);
      const query = targetOf(place.host.name);
      const body = toPlatform(spec, offer, options, place.gpus);
      const { operation } = await api.client.send('POST', '/1.0/instances', { query, body });
      await this.#shown(spec.ref, operation);
      return pending(`make:${operation}`, POLL_MS);
    };
    return this.#alone(run);
  }

  /** Each placement sees the one before it. */
  #alone<T>(run: () => Promise<T>): Promise<T> {
    const made = this.#placing.then(run, run);
    this.#placing = made.catch(() => undefined);
    return made;
  }

  /** Waits until what is being made can be seen, or the making has ended. */
  async #shown(ref: OwnerRef, operation: string | undefined): Promise<void> {
    const { api, wait } = this.#deps;
    for (let waited = 0; waited < SHOWN_WITHIN_MS; waited += SHOWN_POLL_MS) {
      if ((await api.instance(ref)) !== undefined) return;
      const running = operation === undefined ? undefined : await api.operation(operation);
      if (running === undefined || running.status_code >= 200) return;
      await wait(SHOWN_POLL_MS);
    }
  }

  /**
   * Its record is there, and nothing says that its disk is complete. Operations do not survive their daemon: where none
   * tells how this one ended, what there is of it was never started and is made anew.
   */
  async #afterMaking(instance: Instance, cookie: string | null): Promise<Step<ObservedMachine>> {
    const { api } = this.#deps;
    const { name } = instance;
    const named = await this.#operationOf(cookie);
    const operation =
      named ?? (await this.#operationsOn(name)).find(({ description }) => /^Creating/.test(description));
    if (operation !== undefined && operation.status_code < 200)
      return pending(`make:${operation.id}`, POLL_MS);
    if (operation?.status_code === 200) {
      await api.client.send('PATCH', pathOf(name), { body: { config: { [mark.phase]: phases.built } } });
      return this.#boot(instance);
    }
    if (isRunning(instance)) return failed('conflict', 'it runs, and was never made in full', 'possible');
    await this.#delete(name);
    await this.#dropImageCopy(instance);
    return pending('make', POLL_MS);
  }

  /**
   * A pool has an unpacked copy of each image, on each member. Where the daemon ended while it unpacked it, Incus takes
   * what there is of it for complete, and no machine made of it boots: it is unpacked anew.
   */
  async #dropImageCopy({ config, expanded_devices: devices, location }: Instance): Promise<void> {
    const { api } = this.#deps;
    const fingerprint = config['volatile.base_image'];
    const pool = rootOf(devices)?.['pool'];
    if (fingerprint === undefined || pool === undefined) return;
    const isCopied = (await api.operations()).some(
      ({ status_code: code, description, location: at }) =>
        code < 200 && /^Creating/.test(description) && (at === undefined || at === location),
    );
    if (isCopied) return;
    try {
      const path = `/1.0/storage-pools/${pool}/volumes/image/${fingerprint}`;
      await api.client.send('DELETE', path, { query: targetOf(location) });
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }

  async stop(ref: OwnerRef, cookie: string | null): Promise<Step<ObservedMachine>> {
    const found = await this.#mine(ref);
    if ('outcome' in found) return found;
    const { instance } = found;
    const { options } = this.#deps;
    if (isStopped(instance)) {
      if (await this.#gpus.release(instance)) return pending('stopped', POLL_MS);
      return done(await this.#show(instance));
    }
    const operation = await this.#operationOf(cookie);
    if (operation !== undefined && operation.status_code < 200) return pending(cookie ?? 'stop', POLL_MS);
    // It did not go down by itself in time: it is switched off.
    const isLate = operation !== undefined && operation.status_code >= 400;
    // One that is frozen does not hear that it should.
    const isForced = isLate || isFrozen(instance) || cookie?.startsWith('force');
    if (isForced) return this.#setPower(ref, { action: 'stop', force: true, timeout: -1 }, 'force');
    return this.#setPower(ref, { action: 'stop', timeout: options.shutdown_s }, 'stop');
  }

  async start(ref: OwnerRef, cookie: string | null): Promise<Step<ObservedMachine>> {
    const found = await this.#mine(ref);
    if ('outcome' in found) return found;
    const { instance } = found;
    const offer = this.#offerOf(instance);
    if (isRunning(instance)) return this.#reached(instance, offer);
    if (isFrozen(instance)) return this.#setPower(ref, { action: 'unfreeze' }, 'resume');
    if (!isStopped(instance)) return pending(cookie ?? 'start', POLL_MS);
    const problem = await this.#failureOf(cookie, 'start');
    if (problem !== undefined) return problem;
    const step = await this.#alone(() => this.#gpus.claim(instance));
    return step ?? this.#setPower(ref, { action: 'start' }, 'start');
  }

  /** One restart for an id: the moment at which the machine was started before it is written down first. */
  async restart(ref: OwnerRef, id: string, cookie: string | null): Promise<Step<ObservedMachine>> {
    const found = await this.#mine(ref);
    if ('outcome' in found) return found;
    const { instance } = found;
    const noted = parseRestart(instance.config[mark.restart]);
    const since = instance.state?.started_at ?? '';
    const put = (value: Restart) =>
      this.#deps.api.client.send('PATCH', pathOf(ref), {
        body: { config: { [mark.restart]: JSON.stringify(value) } },
      });
    if (noted?.id !== id) {
      if (!isRunning(instance)) return failed('conflict', 'it does not run');
      await put({ id, since, isDone: false });
      return this.#setPower(ref, { action: 'restart', force: true, timeout: -1 }, 'restart');
    }
    if (noted.isDone)
      return isRunning(instance)
        ? this.#reached(instance, this.#offerOf(instance))
        : failed('conflict', 'it does not run');
    if (isRunning(instance) && since !== noted.since) {
      const step = await this.#reached(instance, this.#offerOf(instance));
      if (step.outcome === 'done') await put({ ...noted, isDone: true });
      return step;
    }
    const operation = (await this.#operationOf(cookie)) ?? (await this.#operationsOn(ref)).at(0);
    if (operation !== undefined && operation.status_code < 200)
      return pending(`restart:${operation.id}`, POLL_MS);
    if (![isRunning, isFrozen, isStopped].some((is) => is(instance))) return pending('restart', POLL_MS);
    const action = isStopped(instance)
      ? { action: 'start' }
      : { action: 'restart', force: true, timeout: -1 };
    return this.#setPower(ref, action, 'restart');
  }

  async destroy(ref: OwnerRef, cookie: string | null): Promise<Step<null>> {
    const found = await this.#find(ref);
    switch (found.is) {
      case 'unknown':
        return failed('transient', found.reason, 'possible');
      case 'coming':
        return pending('destroy', POLL_MS);
      case 'foreign':
      case 'absent':
        // Another Berth that had read the forwards before may have put the machine's back: then it is looked at again.
        return (await this.#removeForwards(ref)) ? pending('destroy', POLL_MS) : done(null);
      case 'ours':
        return this.#remove(found.instance, cookie);
    }
  }

  async #remove(instance: Instance, cookie: string | null): Promise<Step<null>> {
    const { name } = instance;
    const problem = await this.#failureOf(cookie, 'delete');
    if (problem !== undefined) return problem;
    const operation = await this.#operationOf(cookie);
    if (operation !== undefined && operation.status_code < 200) return pending(cookie ?? 'destroy', POLL_MS);
    const busy = (await this.#operationsOn(name)).find(({ status_code: code }) => code < 200);
    if (busy !== undefined) return pending(`wait:${busy.id}`, POLL_MS);
    if (!isStopped(instance))
      return this.#setPower(name, { action: 'stop', force: true, timeout: -1 }, 'off');
    await this.#removeForwards(name);
    return pending(`delete:${await this.#delete(name)}`, POLL_MS);
  }

  /** Undefined: it is gone already. @throws as {@link IncusApi} */
  async #delete(name: string): Promise<string | undefined> {
    try {
      return (await this.#deps.api.client.send('DELETE', pathOf(name))).operation;
    } catch (error) {
      if (isNotFound(error) || isConflict(error)) return undefined;
      throw error;
    }
  }

  /** Whether there were any. */
  async #removeForwards(ref: OwnerRef): Promise<boolean> {
    let hadSome = false;
    for (const network of this.#networks()) if (await this.#forwards?.remove(ref, network)) hadSome = true;
    return hadSome;
  }

  async consoleLog(ref: OwnerRef): Promise<string> {
    const found = await this.#find(ref);
    return found.is === 'ours' ? this.#deps.api.client.text(`${pathOf(ref)}/console`) : '';
  }

  /** Where it is reached, once it is. */
  async #reached(instance: Instance, offer: IncusOffer): Promise<Step<ObservedMachine>> {
    if (addressOf(instance) === undefined) return pending('address', POLL_MS);
    try {
      await this.#forwards?.ensure(instance, offer.network ?? this.#deps.options.network, offer);
    } catch (error) {
      if (error instanceof NoPortLeft) return failed('capacity', error.message, 'certain');
      if (isConflict(error)) return pending('address', POLL_MS);
      throw error;
    }
    const machine = await this.#show(instance);
    return machine.endpoint === undefined
      ? failed('invalid', `port_forwards.addresses names no address of ${instance.location}`, 'certain')
      : done(machine);
  }

  async #setPower(name: string, body: object, kind: string): Promise<Step<never>> {
    try {
      const { operation } = await this.#deps.api.client.send('PUT', `${pathOf(name)}/state`, { body });
      return pending(`${kind}:${operation}`, POLL_MS);
    } catch (error) {
      // Somebody is at it already.
      if (isConflict(error)) return pending(kind, POLL_MS);
      throw error;
    }
  }

  async #find(name: OwnerRef): Promise<Found> {
    if (!isName(name)) return { is: 'absent' };
    const { api } = this.#deps;
    const instance = await api.instance(name);
    if (instance === undefined) {
      const coming = (await api.operations()).find((one) => isMaking(one, name));
      if (coming !== undefined) return { is: 'coming', since: coming.created_at };
      // It may have been written, or its making ended, between the two.
      const again = await api.instance(name);
      if (again !== undefined) return this.#judge(again);
      // A 404 may be about something else that it needs, such as its pool: the list of names decides.
      return (await api.instanceNames()).includes(name)
        ? { is: 'unknown', reason: `Incus lists ${name}, and does not find it` }
        : { is: 'absent' };
    }
    return this.#judge(instance);
  }

  #judge(instance: Instance): Found {
    if (isUnknown(instance) || instance.state === null) return { is: 'unknown', reason: unknownOf(instance) };
    if (!isOurs(instance))
      return hasPartOfMark(instance)
        ? { is: 'unknown', reason: `${instance.name} has only a part of Berth's mark (user.berth.*)` }
        : { is: 'foreign' };
    return { is: 'ours', instance };
  }

  async #mine(ref: OwnerRef): Promise<{ instance: Instance } | Extract<Step<never>, { outcome: 'failed' }>> {
    const found = await this.#find(ref);
    if (found.is === 'ours') return { instance: found.instance };
    const step =
      found.is === 'unknown'
        ? failed('transient', found.reason)
        : failed('gone', `there is no instance ${ref}`);
    return step as Extract<Step<never>, { outcome: 'failed' }>;
  }

  async #show(instance: Instance): Promise<ObservedMachine> {
    const network = this.#offerOf(instance).network ?? this.#deps.options.network;
    const forwards = this.#forwards === undefined ? [] : await this.#deps.api.forwards(network);
    return fromPlatform(instance, this.#endpointOf(instance, forwards));
  }

  #endpointOf(instance: Instance, forwards: readonly Forward[]): Endpoint | undefined {
    if (this.#forwards !== undefined) return this.#forwards.endpointOf(instance, forwards);
    const publicIp = addressOf(instance);
    const sshUsername = instance.config[mark.loginUser] ?? 'root';
    return publicIp === undefined ? undefined : { publicIp, sshPort: SSH_PORT, sshUsername };
  }

  #offerOf({ config }: Instance): IncusOffer {
    return offerOf(this.#deps.catalog.offers.get(config[mark.offer] ?? ''));
  }

  /** Undefined: the cookie names none, or nobody knows it any more. */
  async #operationOf(cookie: string | null): Promise<Operation | undefined> {
    const id = cookie?.split(':')[1];
    return id === undefined || !/^[0-9a-f-]{36}$/.test(id) ? undefined : this.#deps.api.operation(id);
  }

  async #operationsOn(name: string): Promise<Operation[]> {
    const all = await this.#deps.api.operations();
    return all
      .filter(({ resources }) => resources?.['instances']?.some((path) => isPathOf(path, name)))
      .sort((a, b) => a.status_code - b.status_code);
  }

  /** How the operation of the cookie failed, if it did, and where it was of that kind. */
  async #failureOf(
    cookie: string | null,
    kind?: string,
  ): Promise<Extract<Step<never>, { outcome: 'failed' }> | undefined> {
    if (kind !== undefined && !cookie?.startsWith(`${kind}:`)) return undefined;
    const operation = await this.#operationOf(cookie);
    if (operation === undefined || operation.status_code < 400) return undefined;
    const refusal = new IncusRefusal(operation.status_code, operation.err ?? operation.description, 'POST');
    const step = toFailure(refusal);
    if (step.outcome !== 'failed' || step.code === 'conflict' || step.code === 'gone') return undefined;
    const isBoot = kind === 'boot' && (step.code === 'internal' || step.code === 'invalid');
    return {
      ...step,
      ...(isBoot && { code: 'boot_failed' }),
      sideEffect: kind === undefined ? 'none' : 'certain',
    };
  }
}

/** On a single daemon there is no member that could be silent. */
function unknownOf({ name, location }: Instance): string {
  return location === 'none'
    ? `Incus shows ${name} in the state Error`
    : `the member ${location} does not tell what became of it`;
}

interface Restart {
  id: string;
  since: string;
  isDone: boolean;
}

function parseRestart(text: string | undefined): Restart | undefined {
  try {
    return text === undefined ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isMaking({ status_code: code, description, resources }: Operation, name: string): boolean {
  if (code >= 200 || !/^Creating/.test(description)) return false;
  return resources?.['instances']?.some((path) => isPathOf(path, name)) ?? false;
}

function isPathOf(path: string, name: string): boolean {
  return path.split('?')[0] === pathOf(name);
}

export function pathOf(name: string): string {
  return `/1.0/instances/${name}`;
}
