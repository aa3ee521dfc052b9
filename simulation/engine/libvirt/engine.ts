import type { VirshCall } from '../../../src/drivers/libvirt/client.ts';
import { hasProblem, problemOf, VirshError } from '../../../src/drivers/libvirt/errors.ts';
import { fleetOf, type Member } from '../../../src/drivers/libvirt/fleet.ts';
import type { HostShell } from '../../../src/drivers/libvirt/hosts/host-shell.ts';
import { MemoryHost } from '../../../src/drivers/libvirt/memory-host.fixture.ts';
import { driverOf } from '../../../src/drivers/libvirt/open.ts';
import { libvirtConfigSchema } from '../../../src/drivers/libvirt/options.ts';
import type { PlatformDriver } from '../../../src/orchestrator/model/platform-driver.ts';
import type { Clock } from '../../../src/ports/clock.ts';
import { silentLog } from '../../../test/support/doubles/log.ts';
import type { ServerProcess } from '../../kernel/process.ts';
import type { Commands } from '../commands.ts';
import {
  type Bytes,
  type Disk,
  Engine,
  type EngineHost,
  type EngineParts,
  FULL,
  type HandsOn,
  isOf,
  type Machine,
  READ_ONLY,
} from '../engine.ts';
import {
  bytesOf,
  cloned,
  type Domain,
  diskNameOf,
  diskOf,
  IMAGE,
  machineOf,
  refOfFile,
  renamed,
  seedOf,
} from './domains.ts';

/** As a call of virsh has it without a limit of its own. */
const CALL_MS = 15_000;
const READS = new Set(
  'hostname nodeinfo domcapabilities pool-info net-info nwfilter-list pool-dumpxml pool-refresh list dumpxml domstate domblkerror vol-list vol-info vol-dumpxml vol-download domifaddr snapshot-list'.split(
    ' ',
  ),
);
const SHELL_READS = new Set(
  'facts domains neighbours exists machines processes gpus network probe'.split(' '),
);

/** A call with the limits of its step, where the driver has any. */
type Limited = VirshCall & { limits?: { begin(): void; signal: AbortSignal } | undefined };

interface Host extends EngineHost {
  memory: MemoryHost;
  /** Why it makes no volumes. */
  refusal: string | undefined;
}

/** Hosts of libvirt in memory, and the real driver for each server. */
export class LibvirtEngine extends Engine {
  readonly driverName = 'libvirt';
  readonly hosts: readonly Host[];
  #clones = 0;

  constructor(parts: EngineParts) {
    super(parts);
    this.hosts = Array.from({ length: parts.hosts }, (_, index) => {
      const name = `kvm-${index + 1}`;
      const memory = new MemoryHost({
        name,
        datacenter: parts.datacenter,
        public_ip: `203.0.113.${index + 1}`,
      });
      return { name, isSilent: false, memory, refusal: undefined };
    });
  }

  driver(process: ServerProcess, clock: Clock): PlatformDriver {
    const { catalog } = this.parts;
    const config = libvirtConfigSchema.parse({
      driver: 'libvirt',
      hosts: this.hosts.map(({ name, memory: { options } }) => ({
        name,
        datacenter: options.datacenter,
        public_ip: options.public_ip,
      })),
      images: { 'ubuntu-24.04': { volume: IMAGE, user: 'ubuntu' } },
    });
    const members = this.hosts.map((host) => this.#memberOf(host, process));
    const fleet = fleetOf(members);
    return driverOf({ fleet, config, catalog, clock, log: silentLog });
  }

  /** Sends one command, as a driver of the process does. */
  async command(process: ServerProcess, host: string, args: readonly string[], input = ''): Promise<string> {
    return this.#memberOf(this.#host(host), process).virsh(args, { input });
  }

  override clear(): void {
    super.clear();
    for (const host of this.hosts) host.isSilent = false;
  }

  machines(): Machine[] {
    return this.hosts.flatMap(({ memory }) =>
      [...memory.domains.values()].map((domain) => machineOf(memory, domain)),
    );
  }

  protected override bytes(): [Bytes, Disk][] {
    return this.hosts.flatMap(({ memory }) =>
      [...memory.files].flatMap(([name, file]): [Bytes, Disk][] => {
        const disk = diskOf(memory, name);
        return disk === undefined ? [] : [[bytesOf(file), disk]];
      }),
    );
  }

  protected override running() {
    return this.hosts.flatMap(({ memory: { domains, files } }) =>
      [...domains.values()].flatMap(({ uuid, definition, live }) => {
        const seed = files.get(seedOf(definition) ?? '');
        if (live === undefined || seed === undefined) return [];
        const disk = files.get(diskNameOf(live) ?? '');
        return { id: uuid, bytes: disk && bytesOf(disk), data: () => seed.content.toString('latin1') };
      }),
    );
  }

  protected override keyOf({ host, identity }: Machine): string {
    return `${host} ${identity}`;
  }

  protected override isUp({ power }: Machine): boolean {
    return power !== 'stopped';
  }

  traces(id: string): string[] {
    return this.hosts.flatMap(({ name: host, memory }) => {
      const domains = this.machines().filter(
        (machine) => machine.host === host && !machine.isCopy && isOf(id, machine.ref),
      );
      const files = [...memory.files.keys()].filter((name) => isOf(id, refOfFile(name)));
      return [...domains.map(({ name }) => `domain ${name}`), ...files].map((what) => `${what} on ${host}`);
    });
  }

  readonly hands: HandsOn = {
    move: (machine, name) =>
      this.#byHand(machine, ({ memory }, domain) => {
        const goal = this.#host(name).memory;
        const files = [machine.disk?.name, seedOf(domain.definition)].flatMap((file) => file ?? []);
        const isTaken = goal.domains.has(machine.name) || files.some((file) => goal.files.has(file));
        if (isTaken || machine.volumes.length > 0 || machine.host === name) return false;
        memory.domains.delete(machine.name);
        goal.domains.set(machine.name, domain);
        for (const file of files) {
          const found = memory.files.get(file);
          if (found === undefined) continue;
          memory.files.delete(file);
          goal.files.set(file, found);
        }
        this.moved(machine, { ...machine, host: name });
        return true;
      }),
    rename: (machine, name) =>
      this.#byHand(machine, ({ memory }, domain) => {
        if (machine.power !== 'stopped' || memory.domains.has(name)) return false;
        memory.domains.delete(machine.name);
        memory.domains.set(name, { ...domain, definition: renamed(domain.definition, name) });
        return true;
      }),
    undefine: (machine) => {
      let saved: Domain | undefined;
      const isDone = this.#byHand(machine, ({ memory }, domain) => {
        if (machine.power !== 'stopped') return false;
        saved = domain;
        return memory.domains.delete(machine.name);
      });
      if (!isDone || saved === undefined) return undefined;
      const domain = saved;
      return () => {
        const { domains } = this.#host(machine.host).memory;
        if (!domains.has(machine.name)) domains.set(machine.name, domain);
        this.observe('a person');
      };
    },
    clone: (machine, name) =>
      this.#byHand(machine, ({ memory }, domain) => {
        const { disk } = machine;
        const file = disk && memory.files.get(disk.name);
        if (machine.power !== 'stopped' || disk === undefined || file === undefined) return false;
        const uuid = `c107e000-0000-4000-8000-${String(++this.#clones).padStart(12, '0')}`;
        memory.files.set(`${name}.qcow2`, { ...file });
        memory.domains.set(name, { uuid, definition: cloned(domain.definition, name, uuid, disk.name) });
        return true;
      }),
    remove: (machine) =>
      this.#byHand(machine, ({ memory }, domain) => {
        const files = [machine.disk?.name, seedOf(domain.definition)].flatMap((file) => file ?? []);
        for (const file of files) memory.files.delete(file);
        return memory.domains.delete(machine.name);
      }),
    refuse: (name, refusal) => {
      const host = this.#host(name);
      const { memory } = host;
      const before = memory.filesystem;
      host.refusal = refusal;
      if (refusal === READ_ONLY) memory.filesystem = { ...before, mode: 'ro' };
      if (refusal === FULL) memory.filesystem = { ...before, freeGb: 0 };
      // QEMU pauses guests that write.
      for (const domain of memory.domains.values())
        if (refusal === FULL && domain.live !== undefined) domain.pause = 'I/O error';
      return () => {
        host.refusal = undefined;
        memory.filesystem = before;
      };
    },
    freeze: ({ host, name }, chance) => {
      const { memory } = this.#host(host);
      if (!memory.lastKnown.has(name)) return undefined;
      memory.silent.add(name);
      return () => {
        memory.silent.delete(name);
        if (chance.happens(0.5)) delete memory.domains.get(name)?.live;
        this.observe('a person');
      };
    },
    powerOff: (machine) =>
      this.#byHand(machine, (_, domain) => {
        delete domain.live;
        delete domain.pause;
        return true;
      }),
  };

  #byHand({ host: name, name: of }: Machine, act: (host: Host, domain: Domain) => boolean): boolean {
    const host = this.#host(name);
    const domain = host.memory.domains.get(of);
    const isDone = domain !== undefined && !host.memory.silent.has(of) && act(host, domain);
    this.observe('a person');
    return isDone;
  }

  #host(name: string): Host {
    const host = this.hosts.find((one) => one.name === name);
    if (host === undefined) throw new Error(`there is no host ${name}`);
    return host;
  }

  /** The host as the driver of one process reaches it: each command of it goes by way of the scheduler. */
  #memberOf(host: Host, process: ServerProcess): Member {
    const { memory } = host;
    const virsh = async <T>(
      args: readonly string[],
      { limits, ...call }: Limited,
      run: (call: Limited) => Promise<T>,
    ): Promise<T> => {
      limits?.begin();
      const line = args.slice(0, 5).join(' ').slice(0, 160);
      const isRead = limits === undefined && (args.length === 1 || READS.has(args[0] ?? ''));
      const { timeoutMs = CALL_MS } = call;
      const command = { host, line, isRead, timeoutMs, signal: limits?.signal };
      // Its limits were checked where it began; at the host only its fence is compared.
      const sent = limits === undefined ? call : { ...call, limits: { ...limits, begin: () => undefined } };
      return this.#send(process, command, async () => {
        const { refusal } = host;
        const isMeant = args[0] === 'vol-create-as' || (args[0] === 'vol-delete' && refusal === READ_ONLY);
        if (isMeant && refusal !== undefined)
          throw new VirshError(problemOf(refusal), `${args[2]}: ${refusal}`);
        try {
          return await run(sent);
        } catch (error) {
          if (hasProblem(error, 'late')) await this.parts.scheduler.sleep(call.withinMs ?? timeoutMs);
          throw error;
        }
      });
    };
    const inShell = memory.shell.run as (...args: unknown[]) => ReturnType<HostShell['run']>;
    const run = async (
      script: string,
      args: readonly string[],
      timeoutMs = CALL_MS,
      limits?: Limited['limits'],
    ): ReturnType<HostShell['run']> => {
      limits?.begin();
      const words = args.filter((arg) => arg !== '').slice(0, 6);
      const line = `sh ${words.join(' ')}`.slice(0, 160);
      const isRead = limits === undefined && SHELL_READS.has(args[0] ?? '');
      const command = { host, line, isRead, timeoutMs, signal: limits?.signal };
      const sent = limits && { ...limits, begin: () => undefined };
      return this.#send(process, command, () => inShell(script, args, timeoutMs, sent));
    };
    const shell: HostShell = { name: host.name, run };
    const own: Partial<Member> = {
      virsh: (args, call = {}) => virsh(args, call, (sent) => memory.virsh(args, sent)),
      virshBytes: (args, call = {}) => virsh(args, call, () => memory.virshBytes(args)),
      shell,
      close: async () => undefined,
    };
    return new Proxy<Member>(memory, {
      get: (target, key) => Reflect.get(own, key) ?? Reflect.get(target, key, target),
    });
  }

  #send<T>(
    process: ServerProcess,
    command: Parameters<Commands['send']>[1],
    run: () => Promise<T>,
  ): Promise<T> {
    const line = `${command.line} on ${command.host.name}`;
    return this.parts.commands.send(process, command, (isLate) => {
      const by = { process, line, isLate };
      const running = run();
      this.observe(by);
      // A command of several parts may go on after this.
      const settled = running.finally(() => this.observe(by));
      return settled;
    });
  }
}

/** What virsh says where a host does not answer. */
export const unreachable = (why: string): Error => new VirshError('unreachable', why);
