import type { Doer } from '../engine.ts';
import { Refusal } from './api.ts';
import type { Cloud } from './cloud.ts';
import { type Flavor, POWER, type Server, type VmState } from './records.ts';
import { EMPTY, type Servers } from './servers.ts';
import { Shelving } from './shelving.ts';

/** What the body of an action may say. */
export interface ActionArgs {
  type?: string;
  flavorRef?: string;
  imageRef?: string;
  host?: string | null;
  state?: string;
  length?: number | null;
  availability_zone?: string;
}

interface Action {
  /** The states that it is allowed in; undefined: all. */
  from?: readonly VmState[];
  /** Whether it is allowed while something else is done. */
  isAlways?: boolean;
  isForAdmins?: boolean;
  /** 202 if it says nothing else. */
  status?: number;
  run: (server: Server, args: ActionArgs, by: Doer) => unknown;
}

const WHOLE: readonly VmState[] = ['active', 'stopped', 'paused', 'suspended'];

/** `POST /servers/ID/action`, see nova/compute/api.py. */
export class ServerActions {
  readonly #servers: Servers;
  readonly #cloud: Cloud;
  readonly #shelving: Shelving;
  readonly #actions: Readonly<Record<string, Action>>;

  constructor(servers: Servers) {
    this.#servers = servers;
    this.#cloud = servers.cloud;
    this.#shelving = new Shelving(servers);
    const simple = (
      from: readonly VmState[],
      task: string,
      to: VmState,
      power: number,
      ms: readonly [number, number] = [1_000, 20_000],
    ): Action => ({
      from,
      run: (server, _, by) => this.#simple(server, { task, to, power, ms }, by),
    });
    this.#actions = {
      'os-start': simple(['stopped'], 'powering-on', 'active', POWER.running, [2_000, 30_000]),
      'os-stop': simple(['active', 'error'], 'powering-off', 'stopped', POWER.off, [5_000, 60_000]),
      pause: simple(['active'], 'pausing', 'paused', POWER.paused),
      unpause: simple(['paused'], 'unpausing', 'active', POWER.running),
      suspend: simple(['active'], 'suspending', 'suspended', POWER.off),
      resume: simple(['suspended'], 'resuming', 'active', POWER.running),
      rescue: simple(['active', 'stopped', 'error'], 'rescuing', 'rescued', POWER.running, [3_000, 40_000]),
      unrescue: simple(['rescued'], 'unrescuing', 'active', POWER.running, [3_000, 40_000]),
      reboot: {
        from: ['active', 'stopped', 'paused', 'suspended', 'error'],
        isAlways: true,
        run: (server, { type = '' }, by) => this.#reboot(server, type.toUpperCase(), by),
      },
      rebuild: {
        from: ['active', 'stopped', 'error'],
        run: (server, { imageRef = '' }, by) => this.#rebuild(server, imageRef, by),
      },
      resize: {
        from: ['active', 'stopped'],
        run: (server, { flavorRef = '' }, by) =>
          this.#resize(server, this.#otherFlavor(server, flavorRef), by),
      },
      migrate: {
        from: ['active', 'stopped'],
        isForAdmins: true,
        run: (server, args, by) => this.#resize(server, server.flavor, by, args?.host ?? undefined),
      },
      'os-migrateLive': {
        from: ['active', 'paused'],
        isForAdmins: true,
        run: (server, { host }, by) => this.#liveMigrate(server, host ?? undefined, by),
      },
      confirmResize: { from: ['resized'], status: 204, run: (server, _, by) => this.#confirm(server, by) },
      revertResize: { from: ['resized'], run: (server, _, by) => this.#revert(server, by) },
      shelve: { from: WHOLE, run: (server, _, by) => this.#shelving.shelve(server, by) },
      shelveOffload: {
        from: ['shelved'],
        isForAdmins: true,
        run: (server, _, by) =>
          this.#servers.begin(server, 'shelving_offloading', by, (step) =>
            this.#shelving.offload(server, by, step),
          ),
      },
      unshelve: {
        from: ['shelved', 'shelved_offloaded'],
        run: (server, { availability_zone: zone }, by) => this.#shelving.unshelve(server, zone, by),
      },
      lock: { isAlways: true, run: (server) => this.#lock(server, true) },
      unlock: { isAlways: true, run: (server) => this.#lock(server, false) },
      restore: simple(['soft-delete'], 'restoring', 'active', POWER.running),
      forceDelete: { isAlways: true, run: (server, _, by) => this.#servers.remove(server, by, true) },
      'os-resetState': {
        isAlways: true,
        isForAdmins: true,
        run: (server, { state }) => {
          Object.assign(server, { vmState: state, taskState: null, work: undefined });
        },
      },
      'os-getConsoleOutput': {
        isAlways: true,
        status: 200,
        run: (server) => {
          if (server.host === undefined) throw new Refusal(409, `Instance ${server.id} is not ready`);
          return { output: server.isRunning ? `cloud-init: ${server.name} is up\n` : '' };
        },
      },
    };
  }

  /** @throws {Refusal} 409 in a state that it is not allowed in */
  act(
    server: Server,
    name: string,
    args: ActionArgs,
    by: Doer,
    isAdmin: boolean,
  ): { status: number; body?: object } {
    const action = this.#actions[name];
    if (action === undefined) throw new Refusal(400, `There is no such action: ${name}`);
    const { from, isAlways = false, isForAdmins = false, status = 202, run } = action;
    if (isForAdmins && !isAdmin)
      throw new Refusal(403, `Policy doesn't allow os_compute_api:${name} to be performed.`);
    if (server.isLocked && !isAdmin && name !== 'unlock' && status !== 200)
      throw new Refusal(409, `Instance ${server.id} is locked`);
    const method = name.replace(/^os-/, '');
    if (from !== undefined && !from.includes(server.vmState))
      refuse(server, method, 'vm_state', server.vmState);
    if (!isAlways && server.taskState !== null) refuse(server, method, 'task_state', server.taskState);
    const body = run(server, args, by);
    this.#cloud.observe(by);
    return status === 200 ? { status, body: body as object } : { status };
  }

  #lock(server: Server, isLocked: boolean): void {
    server.isLocked = isLocked;
  }

  #simple(
    server: Server,
    { task, to, power, ms }: { task: string; to: VmState; power: number; ms: readonly [number, number] },
    by: Doer,
  ): void {
    this.#servers.begin(server, task, by, async (step) => {
      await step(...ms);
      if (this.#cloud.fails()) throw new Refusal(500, `internal error: ${task} failed`);
      this.#servers.settle(server, to, power);
      this.#cloud.observe(by);
    });
  }

  #reboot(server: Server, type: string, by: Doer): void {
    const { taskState, vmState } = server;
    const isSoft = type === 'SOFT';
    if (isSoft && vmState !== 'active') refuse(server, 'reboot', 'vm_state', vmState);
    const mayBe = [
      null,
      'rebooting',
      'reboot_pending',
      'reboot_started',
      'resuming',
      'rebooting_hard',
      'unpausing',
      'pausing',
      'suspending',
    ];
    if (isSoft ? taskState !== null : !mayBe.includes(taskState))
      refuse(server, 'reboot', 'task_state', String(taskState));
    const end = isSoft ? '' : '_hard';
    this.#servers.begin(server, `rebooting${end}`, by, async (step) => {
      await step(1_000, 5_000);
      server.taskState = `reboot_started${end}`;
      server.isRunning = false;
      this.#cloud.observe(by);
      await step(2_000, isSoft ? 120_000 : 20_000);
      this.#servers.settle(server, 'active', POWER.running);
      this.#cloud.observe(by);
    });
  }

  /** Its disk is made anew from an image. */
  #rebuild(server: Server, image: string, by: Doer): void {
    if (this.#cloud.images.get(image)?.status !== 'active')
      throw new Refusal(400, 'Cannot find image for rebuild');
    if (server.isVolumeBacked && image !== server.image)
      throw new Refusal(400, 'Unable to rebuild with a different image for a volume-backed server.');
    const wasOff = server.vmState === 'stopped';
    server.image = image;
    this.#servers.begin(server, 'rebuilding', by, async (step) => {
      await step(2_000, 20_000);
      server.taskState = 'rebuild_spawning';
      server.isRunning = false;
      if (server.disk !== undefined) server.disk = { content: EMPTY };
      this.#cloud.observe(by);
      await step(3_000, 30_000);
      this.#servers.settle(server, wasOff ? 'stopped' : 'active', wasOff ? POWER.off : POWER.running);
      this.#cloud.observe(by);
    });
  }

  #otherFlavor({ flavor }: Server, id: string): Flavor {
    const wanted = this.#cloud.flavors.get(id);
    if (wanted === undefined) throw new Refusal(400, `Flavor ${id} could not be found.`);
    if (wanted === flavor) throw new Refusal(400, 'When resizing, instances must change flavor!');
    return wanted;
  }

  /** To another flavor, or with the same one to another host; it waits to be confirmed then. */
  #resize(server: Server, flavor: Flavor, by: Doer, name?: string): void {
    const cloud = this.#cloud;
    const { vmState, host: old, flavor: oldFlavor } = server;
    if (old === undefined || !old.isUp) throw new Refusal(409, 'Service is unavailable at this time.');
    this.#servers.begin(server, 'resize_prep', by, async (step) => {
      await step(1_000, 10_000);
      const goal = cloud.schedule(server, flavor, old, name);
      if (goal === undefined)
        throw new Refusal(500, 'No valid host was found. No valid host found for resize');
      const held = cloud.allocations.get(server.id);
      if (held !== undefined) cloud.allocations.set(`${server.id}/before`, held);
      cloud.allocate(server, goal, flavor);
      server.taskState = 'resize_migrating';
      server.isRunning = false;
      cloud.observe(by);
      await step(5_000, 60_000);
      Object.assign(server, { taskState: 'resize_finish', host: goal, flavor });
      server.before = { host: old, flavor: oldFlavor, vmState };
      for (const port of cloud.portsOf(server)) port.host = goal.name;
      await step(2_000, 20_000);
      this.#servers.settle(server, 'resized', vmState === 'active' ? POWER.running : POWER.off);
      cloud.observe(by);
    });
  }

  #confirm(server: Server, by: Doer): void {
    const { before } = server;
    if (before === undefined) throw new Refusal(400, 'Instance has not been resized.');
    // Its task state is none meanwhile.
    void this.#cloud.takes(1_000, 10_000).then(() => {
      if (server.before !== before || server.vmState !== 'resized') return;
      this.#cloud.allocations.delete(`${server.id}/before`);
      server.before = undefined;
      server.vmState = before.vmState;
      this.#cloud.observe(by);
    });
  }

  #revert(server: Server, by: Doer): void {
    const cloud = this.#cloud;
    const { before } = server;
    if (before === undefined) throw new Refusal(400, 'Instance has not been resized.');
    this.#servers.begin(server, 'resize_reverting', by, async (step) => {
      await step(3_000, 30_000);
      Object.assign(server, { host: before.host, flavor: before.flavor, before: undefined });
      for (const port of cloud.portsOf(server)) port.host = before.host.name;
      cloud.allocations.delete(`${server.id}/before`);
      cloud.allocate(server, before.host, before.flavor);
      this.#servers.settle(server, before.vmState, before.vmState === 'active' ? POWER.running : POWER.off);
      cloud.observe(by);
    });
  }

  #liveMigrate(server: Server, name: string | undefined, by: Doer): void {
    const cloud = this.#cloud;
    const goal =
      name === undefined
        ? cloud.schedule(server, server.flavor, server.host)
        : cloud.computes.find((one) => one.name === name);
    if (goal === undefined || goal === server.host)
      throw new Refusal(400, 'Compute host could not be found, or is where the server is.');
    this.#servers.begin(server, 'migrating', by, async (step) => {
      await step(5_000, 60_000);
      server.host = goal;
      cloud.allocate(server, goal, server.flavor);
      for (const port of cloud.portsOf(server)) port.host = goal.name;
      server.taskState = null;
      cloud.observe(by);
    });
  }
}

function refuse({ id }: Server, method: string, attribute: string, state: string): never {
  throw new Refusal(409, `Cannot '${method}' instance ${id} while it is in ${attribute} ${state}`);
}
