import type { DestroyOrder } from '../../orchestrator/model/destroy-order.ts';
import type {
  Call,
  Listing,
  MachineSpec,
  ObservedMachine,
  OwnerRef,
  Placing,
  Presence,
  Step,
} from '../../orchestrator/model/platform-driver.ts';
import { done, failed, pending } from '../../platform-model/steps.ts';
import type { Forward, Instance } from './api.ts';
import { disown } from './disown.ts';
import { isConflict, isNotFound } from './errors.ts';
import { Finder } from './finder.ts';
import { Gpus } from './gpus.ts';
import { type Identified, identifyAll, isTemporary } from './identity.ts';
import type { InstanceReader } from './instances.ts';
import { Making, type MakingDeps } from './making.ts';
import { type Failure, Operations, POLL_MS, pathOf } from './operations.ts';
import { Reach } from './reach.ts';
import { fromPlatform, isFrozen, isRunning, isStopped, isUnknown, mark, refOf, UUID } from './translate.ts';

export interface MachineDeps extends MakingDeps {
  instances: InstanceReader;
  now: () => number;
}

/** The machines of a platform: Incus instances with Berth's mark. */
export class Machines {
  readonly finder: Finder;
  readonly #deps: MachineDeps;
  readonly #operations: Operations;
  readonly #reach: Reach;
  readonly #gpus: Gpus;
  readonly #making: Making;
  #last: Promise<unknown> = Promise.resolve();

  constructor(deps: MachineDeps) {
    this.#deps = deps;
    this.finder = new Finder(deps);
    this.#operations = new Operations(deps.api);
    this.#reach = new Reach(deps);
    this.#gpus = new Gpus(deps);
    this.#making = new Making(deps, {
      finder: this.finder,
      operations: this.#operations,
      gpus: this.#gpus,
      reach: this.#reach,
      alone: (run) => this.#alone(run),
    });
  }

  async get(ref: OwnerRef): Promise<Presence<ObservedMachine>> {
    const found = await this.finder.find(ref);
    switch (found.is) {
      case 'unknown':
        return { answer: 'unknown', reason: found.reason };
      case 'coming':
        return { answer: 'observed', value: { ref, power: 'building', createdAt: Date.parse(found.since) } };
      case 'ours':
        await this.#reach.restore(found.instance);
        if (isRunning(found.instance)) await this.#noteIdentity(found.instance).catch(() => undefined);
        return { answer: 'observed', value: await this.#reach.show(found.instance, found.isMoving) };
      case 'foreign':
      case 'absent': {
        const { answered } = await this.#deps.api.hosts();
        return { answer: 'gone', hosts: hostsOf(answered, found.silent) };
      }
    }
  }

  /** Omits the instances of a silent member. Their absence proves nothing, and `get` answers unknown for them. */
  async list(): Promise<Listing<ObservedMachine>> {
    const { api, instances: reader } = this.#deps;
    const [{ instances, names, silent }, { answered }, forwards] = await Promise.all([
      reader.read({ state: true }),
      api.hosts(),
      this.#reach.forwards(),
    ]);
    const known = identifyAll(instances.filter((instance) => !isUnknown(instance)));
    const there = [...known].filter(([, { machine, isUnclear }]) => machine !== undefined || isUnclear);
    // A failure is retried at the next listing.
    void this.#reach
      .sweep(forwards, [...names, ...there.map(([ref]) => ref)], async (ref) => {
        const found = await this.finder.find(ref);
        return found.is === 'absent' && found.silent.size === 0;
      })
      .catch(() => undefined);
    void this.#restorePorts(
      [...known.values()].flatMap(({ machine }) => machine ?? []),
      forwards,
    );
    const moving = await this.#temporary(known);
    return {
      answer: 'listed',
      items: [...known.values()].flatMap(({ machine }) =>
        machine === undefined
          ? []
          : [fromPlatform(machine, this.#reach.endpointOf(machine, forwards), moving.has(machine.name))],
      ),
      copies: [...known].flatMap(([ref, { copies }]) =>
        copies.flatMap(({ name, location }) => (moving.has(name) ? [] : [{ ref, name, host: location }])),
      ),
      hosts: hostsOf(answered, silent),
    };
  }

  /**
   * Restores missing ports of running machines, such as after a move to another member. The next listing then shows
   * their endpoint.
   */
  async #restorePorts(machines: readonly Instance[], forwards: readonly Forward[]): Promise<void> {
    for (const machine of machines)
      if (this.#reach.lacksPorts(machine, forwards)) await this.get(refOf(machine)).catch(() => undefined);
  }

  /** The temporary names of instances that Incus is moving. */
  async #temporary(known: ReadonlyMap<OwnerRef, Identified>): Promise<Set<string>> {
    const names = new Set<string>();
    for (const [ref, { machine, copies }] of known)
      for (const one of machine === undefined ? copies : [machine, ...copies])
        if (isTemporary(one) && (await this.#operations.areMoving([ref, one.name]))) names.add(one.name);
    return names;
  }

  /** @throws as {@link IncusApi} */
  place(spec: MachineSpec, avoidHosts: readonly string[]): Promise<Placing> {
    return this.#making.place(spec, avoidHosts);
  }

  create(spec: MachineSpec, cookie: string | null, call?: Call): Promise<Step<ObservedMachine>> {
    return this.#making.create(spec, cookie, call);
  }

  /** Runs one at a time, so that each call sees the resources that the previous one took. */
  #alone<T>(run: () => Promise<T>): Promise<T> {
    const made = this.#last.then(run, run);
    this.#last = made.catch(() => undefined);
    return made;
  }

  /** Stops one run of the machine. If it was started again since, the new run gets its own shutdown request. */
  async stop(ref: OwnerRef, cookie: string | null, call?: Call): Promise<Step<ObservedMachine>> {
    const found = await this.#mine(ref, call);
    if ('outcome' in found) return found;
    const { instance } = found;
    const { options } = this.#deps;
    if (isStopped(instance)) {
      if (await this.#gpus.release(instance, call)) return pending('stopped', POLL_MS);
      return done(await this.#reach.show(instance));
    }
    const operation = await this.#operations.of(cookie);
    if (operation !== undefined && operation.status_code < 200) return pending(cookie ?? 'stop', POLL_MS);
    const run = runOf(instance);
    const [kind, , ...meant] = cookie?.split(':') ?? [];
    const isSameRun = meant.length === 0 || meant.join(':') === run;
    // It did not shut down in time, so it is switched off.
    const isLate = operation !== undefined && operation.status_code >= 400;
    // A frozen machine does not receive a shutdown request.
    const isForced = isFrozen(instance) || (isSameRun && (isLate || kind === 'force'));
    const now = await this.#deps.api.instance(instance.name);
    if (now === undefined || runOf(now) !== run) return pending('stop', POLL_MS);
    const body = isForced
      ? { action: 'stop', force: true, timeout: -1 }
      : { action: 'stop', timeout: options.shutdown_s };
    return this.#operations.setPower(instance.name, body, isForced ? 'force' : 'stop', call, `:${run}`);
  }

  async start(ref: OwnerRef, cookie: string | null, call?: Call): Promise<Step<ObservedMachine>> {
    const found = await this.#mine(ref, call);
    if ('outcome' in found) return found;
    const { instance } = found;
    const setPower = (action: string, kind: string) =>
      this.#operations.setPower(instance.name, { action }, kind, call);
    if (isRunning(instance)) return this.#reach.reached(instance, call);
    if (isFrozen(instance)) return setPower('unfreeze', 'resume');
    if (!isStopped(instance)) return pending(cookie ?? 'start', POLL_MS);
    const problem = await this.#operations.failureOf(cookie, 'start');
    if (problem !== undefined) return problem;
    const step = await this.#alone(() => this.#gpus.claim(instance, call));
    return step ?? setPower('start', 'start');
  }

  /** Restarts once per id. The start time of the current run is recorded first. */
  async restart(
    ref: OwnerRef,
    id: string,
    cookie: string | null,
    call?: Call,
  ): Promise<Step<ObservedMachine>> {
    const found = await this.#mine(ref, call);
    if ('outcome' in found) return found;
    const { instance } = found;
    const { name } = instance;
    const noted = parseRestart(instance.config[mark.restart]);
    const since = instance.state?.started_at ?? '';
    const note = (value: Restart) => this.#note(instance, { [mark.restart]: JSON.stringify(value) }, call);
    const reset = { action: 'restart', force: true, timeout: -1 };
    if (noted?.id !== id) {
      if (!isRunning(instance)) return failed('conflict', 'it does not run');
      if (!(await note({ id, since, isDone: false }))) return pending('restart', POLL_MS);
      return this.#operations.setPower(name, reset, 'restart', call);
    }
    if (noted.isDone)
      return isRunning(instance)
        ? this.#reach.reached(instance, call)
        : failed('conflict', 'it does not run');
    if (isRunning(instance) && since !== noted.since) {
      const step = await this.#reach.reached(instance, call);
      if (step.outcome !== 'done' || (await note({ ...noted, isDone: true }))) return step;
      return pending('restart', POLL_MS);
    }
    const operation = (await this.#operations.of(cookie)) ?? (await this.#operations.on(name)).at(0);
    if (operation !== undefined && operation.status_code < 200)
      return pending(`restart:${operation.id}`, POLL_MS);
    if (![isRunning, isFrozen, isStopped].some((is) => is(instance))) return pending('restart', POLL_MS);
    return this.#operations.setPower(
      name,
      isStopped(instance) ? { action: 'start' } : reset,
      'restart',
      call,
    );
  }

  async destroy(ref: OwnerRef, cookie: string | null, order: DestroyOrder, call?: Call): Promise<Step<null>> {
    const found = await this.finder.search(ref);
    switch (found.is) {
      case 'unknown':
        return failed('transient', found.reason, 'possible');
      case 'coming':
        return pending('destroy', POLL_MS);
      case 'foreign':
      case 'absent':
        // Another Berth with an older read of the forwards may have restored the machine's ports, so check again.
        return (await this.#reach.remove(ref, order, call)) ? pending('destroy', POLL_MS) : done(null);
      case 'ours':
        if (found.isMoving) return pending(cookie ?? 'destroy', POLL_MS);
        // Once the machine is gone, one of these would be taken for it.
        if (found.doubtful.length > 0)
          return failed(
            'conflict',
            `${found.doubtful.join(', ')} also has the mark of ${ref}, and may be a copy: unset ${mark.ref} there`,
          );
        return this.#remove(found.instance, cookie, order, call);
    }
  }

  disown(ref: OwnerRef, cookie: string | null, call?: Call): Promise<Step<null>> {
    const { finder } = this;
    return disown(
      { ...this.#deps, finder, operations: this.#operations, reach: this.#reach },
      ref,
      cookie,
      call,
    );
  }

  async #remove(
    instance: Instance,
    cookie: string | null,
    order: DestroyOrder,
    call?: Call,
  ): Promise<Step<null>> {
    const { name } = instance;
    const problem = await this.#operations.failureOf(cookie, 'delete');
    if (problem !== undefined) return problem;
    const operation = await this.#operations.of(cookie);
    if (operation !== undefined && operation.status_code < 200) return pending(cookie ?? 'destroy', POLL_MS);
    const busy = (await this.#operations.on(name)).find(({ status_code: code }) => code < 200);
    if (busy !== undefined) return pending(`wait:${busy.id}`, POLL_MS);
    if (!isStopped(instance))
      return this.#operations.setPower(name, { action: 'stop', force: true, timeout: -1 }, 'off', call);
    await this.#reach.remove(refOf(instance), order, call);
    // The id is noted, so that a copy made from now on is recognised as a copy. An interrupted record is left
    // unchanged: for a change Incus makes an empty folder in place of a missing disk, and then cannot delete it.
    const isBuilt = instance.config[mark.phase] !== undefined;
    if (isBuilt && !(await this.#noteIdentity(instance, call))) return pending('destroy', POLL_MS);
    return pending(`delete:${await this.#delete(name, order, call)}`, POLL_MS);
  }

  /** Undefined: the instance is gone already, or running. @throws as {@link IncusApi} */
  async #delete(name: string, order: DestroyOrder, call?: Call): Promise<string | undefined> {
    try {
      return (await this.#deps.api.client.send('DELETE', pathOf(name), { order, call })).operation;
    } catch (error) {
      if (isNotFound(error) || isConflict(error)) return undefined;
      throw error;
    }
  }

  async consoleLog(ref: OwnerRef): Promise<string> {
    const found = await this.finder.find(ref);
    return found.is === 'ours' ? this.#deps.api.client.text(`${pathOf(found.instance.name)}/console`) : '';
  }

  /** The machine under its current name, after its id was noted in its mark. */
  async #mine(ref: OwnerRef, call?: Call): Promise<{ instance: Instance } | Failure> {
    const found = await this.finder.find(ref);
    if (found.is !== 'ours')
      return (
        found.is === 'unknown'
          ? failed('transient', found.reason)
          : failed('gone', `there is no instance ${ref}`)
      ) as Failure;
    if (found.isMoving) return failed('transient', `Incus is moving ${ref}`) as Failure;
    const { instance } = found;
    if (await this.#isNoted(instance)) return { instance };
    await this.#noteIdentity(instance, call);
    return { instance: (await this.#deps.api.instance(instance.name)) ?? instance };
  }

  /**
   * Notes the id in the mark of a machine that an earlier Berth made, or that got another id by a move. Only if no
   * other instance has its mark, since it could be a copy.
   *
   * @returns false: the instance has changed since it was read
   */
  async #noteIdentity(instance: Instance, call?: Call): Promise<boolean> {
    if (this.#isNoted(instance)) return true;
    const { all } = await this.finder.marked(refOf(instance));
    return all.length !== 1 || this.#note(instance, { [mark.uuid]: instance.config[UUID] }, call);
  }

  /** False: the instance has changed since it was read. */
  async #note({ name, etag }: Instance, config: object, call?: Call): Promise<boolean> {
    try {
      await this.#deps.api.client.send('PATCH', pathOf(name), { body: { config }, etag, call });
      return true;
    } catch (error) {
      if (isConflict(error)) return false;
      throw error;
    }
  }

  #isNoted({ config }: Instance): boolean {
    return config[UUID] === undefined || config[mark.uuid] === config[UUID];
  }
}

function hostsOf(answered: readonly string[], silent: ReadonlySet<string>) {
  return { answered: answered.filter((name) => !silent.has(name)), silent: [...silent] };
}

/** Identifies a run of the machine by its start time. */
function runOf({ state }: Instance): string {
  return state?.started_at ?? '';
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
