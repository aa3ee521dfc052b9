import type { VirshCall } from './client.ts';
import type { HostDomain } from './domain-xml.ts';
import { VirshError, type VirshProblem } from './errors.ts';
import type { Member } from './fleet.ts';
import { openHostWith, type SysfsTree } from './gpus/sysfs.fixture.ts';
import { someHostOptions } from './host-options.fixture.ts';
import type { Limits } from './hosts/guard.ts';
import type { Capabilities } from './hosts/host-facts.ts';
import type { HostShell } from './hosts/host-shell.ts';
import { type HostOptions, libvirtConfigSchema } from './options.ts';
import { descend, element, parseXml, serializeXml, textOf, type XmlElement } from './xml.ts';

const GIB = 1024 ** 3;
const FOLDER = '/images';
const ASLEEP = 'pmsuspended';

interface Domain {
  uuid: string;
  /** The stored definition. */
  definition: XmlElement;
  /** The running definition, with an id. */
  live?: XmlElement;
  /** Reason of a pause; `pmsuspended`: its guest is suspended, which is a separate state. */
  pause?: string;
  /** Its memory is saved, as by `virsh managedsave`. */
  isSaved?: boolean;
  /** Its internal snapshots. */
  snapshots?: string[];
}

interface MemoryFile {
  content: Buffer;
  bytes: number;
  /** Its backing volume. */
  base?: string | undefined;
}

/** A host with libvirt in memory. It executes the driver's virsh commands, with libvirt's refusals. */
export class MemoryHost implements Member {
  readonly name: string;
  readonly options: HostOptions;
  readonly shell: HostShell;
  readonly domains = new Map<string, Domain>();
  readonly lastKnown = new Map<string, HostDomain>();
  /** Content and size of each file in the pool. */
  readonly files = new Map<string, MemoryFile>();
  /** The root of its `/sys`, if it has one. */
  readonly root: string | undefined;
  /** The highest fence of each resource. */
  readonly fences = new Map<string, number>();
  /** Lines that its shell answers to `facts`. */
  facts: readonly string[] = ['clock\t1', 'state\twritable'];
  readonly writers = new Map<string, string>();
  isAway = false;
  /** The domains that libvirt does not answer about. */
  readonly silent = new Set<string>();
  /** Whether the shell sees libvirt's folders. */
  hasFolders = true;
  /** UUIDs of domains whose QEMU runs although libvirt shows them as shut off. */
  readonly alive = new Set<string>();
  isPoolActive = true;
  /** What its shell sees of the pool's file system; libvirt's own figures never change. */
  filesystem = { mode: 'rw', freeGb: 500 };
  /** Names of domains whose QEMU process a signal has stopped. */
  readonly halted = new Set<string>();
  isNetworkActive = true;
  hasFilters = true;
  capabilities: Capabilities = { uefi: true, kvm: true };

  constructor(options: Partial<HostOptions> = {}, tree?: SysfsTree) {
    this.options = someHostOptions({
      network: NAT,
      overcommit: { vcpus: 8, disk: 1 },
      ...options,
    });
    this.name = this.options.name;
    const opened = tree === undefined ? undefined : openHostWith(tree);
    this.root = opened?.place.root;
    this.shell =
      opened === undefined
        ? shellWithout(this)
        : shellAt(opened.shell, opened.place.root, shellWithout(this));
    this.files.set('debian.qcow2', { content: Buffer.alloc(0), bytes: 0 });
  }

  #runs = 0;

  fastestAccelerator: Member['fastestAccelerator'] = async ({ kvm }) => (kvm ? 'kvm' : 'tcg');
  close = async () => {};
  virsh = async (args: readonly string[], call: VirshCall = {}): Promise<string> =>
    this.#answer(args, call).toString();
  virshBytes = async (args: readonly string[]): Promise<Buffer> => Buffer.from(this.#answer(args, {}));

  #answer(args: readonly string[], { input = '', limits, run }: VirshCall): string | Buffer {
    limits?.begin();
    if (this.isAway) throw new VirshError('unreachable', `${this.name} is away`);
    if (limits !== undefined) this.#compare(limits);
    const isOver = run !== undefined && this.#domain(run.uuid).live?.attributes['id'] !== run.id;
    refuseIf(isOver, 'not_running');
    const [command = ''] = args;
    if (args.length > 1) return this.#run(args, input);
    // Combined commands: a failure does not stop the others, and the last one decides the result.
    const lines = command.split('; ');
    const each = lines.map((line, at) => {
      try {
        return this.#run(line.split(' '), '').toString();
      } catch (error) {
        if (error instanceof VirshError && error.problem !== 'late' && at < lines.length - 1) return '';
        throw error;
      }
    });
    return each.join('\n');
  }

  #compare({ resource, fence }: Limits): void {
    refuseIf(fence < (this.fences.get(resource) ?? 0), 'stale');
    this.fences.set(resource, fence);
  }

  #run([command = '', ...rest]: readonly string[], input: string | Uint8Array): string | Buffer {
    const run = this.#commands[command];
    if (run === undefined) throw new Error(`this host knows no ${command}`);
    const flags = rest.filter((one) => one.startsWith('--'));
    const pool = rest.indexOf('--pool');
    const words = rest.filter((one, at) => !one.startsWith('--') && at !== pool + (pool < 0 ? 0 : 1));
    const said = run(words, flags, Buffer.from(input));
    return typeof said === 'string' || Buffer.isBuffer(said) ? said : '';
  }

  readonly #commands: Record<string, (words: string[], flags: string[], input: Buffer) => unknown> = {
    hostname: () => this.name,
    nodeinfo: () => 'CPU(s):  16\nMemory size:  67108864 KiB\n',
    domcapabilities: () =>
      `<domainCapabilities><domain>${this.capabilities.kvm ? 'kvm' : 'qemu'}</domain>${this.capabilities.uefi ? '<value>efi</value>' : ''}</domainCapabilities>`,
    'pool-info': () =>
      this.isPoolActive
        ? `State:  running\nCapacity:  ${500 * GIB}\nAvailable:  ${400 * GIB}\n`
        : 'State:  inactive\n',
    'net-info': () => `Active:  ${this.isNetworkActive ? 'yes' : 'no'}\n`,
    'nwfilter-list': () =>
      this.hasFilters
        ? ' 3c2b6c0a-4b0e-4a64-a9f0-8b1a3d1f2a11   allow-arp\n 5c9f4d7e-1f63-4b8a-9a8e-0f2b6c7d8e22   clean-traffic\n'
        : '',
    'pool-dumpxml': () => `<pool><target><path>${FOLDER}</path></target></pool>`,
    'pool-refresh': () => '',
    list: (_, flags) => {
      refuseIf(this.silent.size > 0, 'late');
      return [...this.domains]
        .filter(([, { live, pause, isSaved = false }]) => {
          if (flags.includes('--with-managed-save')) return isSaved;
          const states = flags.filter((flag) => flag.startsWith('--state-'));
          if (states.length === 0) return flags.includes('--all') || live !== undefined;
          return (
            pause !== undefined && states.includes(pause === ASLEEP ? '--state-other' : '--state-paused')
          );
        })
        .map(([name, { uuid }]) => (flags.includes('--uuid') ? uuid : name))
        .join('\n');
    },
    dumpxml: ([name = ''], flags) => {
      const { definition, live } = this.#domain(name);
      return serializeXml(flags.includes('--inactive') ? definition : (live ?? definition));
    },
    'snapshot-list': ([name = '']) => this.#domain(name).snapshots?.join('\n') ?? '',
    define: (_, _flags, input) => this.define(input.toString()),
    // Sets only Berth's metadata; libvirt adds the prefix to each name.
    metadata: ([, xml = '', name = '']) => {
      const prefixed = xml
        .replaceAll(/<(\/?)(?=[a-z])/g, '<$1berth:')
        .replace(/<berth:\w+/, '$& xmlns:berth="urn:berth:machine:1"');
      const domain = this.#domain(name);
      const { children } = domain.definition;
      const others = children.filter((one) => typeof one === 'string' || one.name !== 'metadata');
      const metadata = element('metadata', {}, [parseXml(prefixed)]);
      domain.definition = { ...domain.definition, children: [metadata, ...others] };
    },
    undefine: ([name = '']) => void this.domains.delete(this.#nameOf(name)),
    domrename: ([name = '', to = '']) => {
      const domain = this.#domain(name);
      refuseIf(domain.live !== undefined, 'invalid');
      this.domains.delete(this.#nameOf(name));
      const rename = (one: XmlElement): XmlElement => ({
        ...one,
        children: one.children.map((child) =>
          typeof child !== 'string' && child.name === 'name' ? element('name', {}, [to]) : child,
        ),
      });
      this.domains.set(to, { ...domain, definition: rename(domain.definition) });
    },
    start: ([name = '']) => {
      const domain = this.#domain(name);
      refuseIf(domain.live !== undefined, 'already_running');
      for (const { path } of disksOf(domain.definition)) this.#file(path.slice(FOLDER.length + 1));
      const { definition } = domain;
      domain.live = { ...definition, attributes: { ...definition.attributes, id: String(++this.#runs) } };
    },
    domstate: ([name = '']) => {
      const { live, pause } = this.#domain(name);
      if (live === undefined) return 'shut off (unknown)';
      if (pause === ASLEEP) return 'pmsuspended (unknown)';
      return pause === undefined ? 'running (booted)' : `paused (${pause})`;
    },
    domblkerror: () => 'vda: no space\n\n',
    // If the disk is full, it pauses again.
    resume: ([name = '']) => {
      const domain = this.#domain(name);
      refuseIf(domain.live === undefined, 'not_running');
      if (domain.pause === 'crashed') throw new VirshError('other', 'domain is crashed');
      if (domain.pause === ASLEEP) throw new VirshError('other', 'domain is pmsuspended');
      if (domain.pause !== 'I/O error') delete domain.pause;
    },
    dompmwakeup: ([name = '']) => {
      const domain = this.#domain(name);
      if (domain.pause !== ASLEEP) throw new VirshError('other', 'domain is not suspended');
      delete domain.pause;
    },
    destroy: ([name = '']) => this.#powerOff(name),
    // Guests shut down at once.
    shutdown: (words) => {
      const name = words.at(-1) ?? '';
      if (this.#domain(name).pause === undefined) this.#powerOff(name);
    },
    'vol-list': (_, flags) => {
      refuseIf(!this.isPoolActive, 'no_pool');
      return [...this.files]
        .map(([name, { bytes }]) =>
          flags.includes('--details')
            ? ` ${name}   ${FOLDER}/${name}   file   ${(bytes / GIB).toFixed(2)} GiB   0 B `
            : ` ${name}   ${FOLDER}/${name}`,
        )
        .join('\n');
    },
    'vol-info': ([name = '']) => `Capacity:  ${this.#file(name).bytes}\n`,
    'vol-dumpxml': ([name = '']) =>
      `<volume><name>${name}</name><capacity>${this.#file(name).bytes}</capacity><allocation unit="bytes">${this.#file(name).content.length}</allocation>${this.#backingOf(name)}<target><path>${FOLDER}/${name}</path></target></volume>`,
    'vol-create-as': ([, name = '', size = '', , base], flags) => {
      refuseIf(this.files.has(name), 'exists');
      if (flags.includes('--backing-vol')) this.#file(base ?? '');
      this.files.set(name, { content: Buffer.alloc(0), bytes: toBytes(size), base });
    },
    'vol-upload': ([name = ''], _, input) => void Object.assign(this.#file(name), { content: input }),
    'vol-download': ([name = '']) => this.#file(name).content,
    'vol-delete': ([name = '']) => {
      this.#file(name);
      this.files.delete(name);
    },
    'vol-resize': ([name = '', size = '']) => {
      this.#file(name).bytes = toBytes(size);
    },
    blockresize: ([, path = '', size = '']) => {
      this.#file(path.slice(FOLDER.length + 1)).bytes = toBytes(size);
    },
    'attach-device': ([name = ''], _, input) =>
      this.#change(name, ['definition', 'live'], (devices) => [...devices, parseXml(input.toString())]),
    'detach-disk': ([name = '', target], flags) =>
      this.#change(name, [flags.includes('--live') ? 'live' : 'definition'], (devices) =>
        devices.filter((one) => typeof one === 'string' || pathOf(one) !== target),
      ),
  };

  /** Defines a domain from XML, as an operator can. */
  define(xml: string): void {
    const definition = parseXml(xml);
    const [name, uuid] = [textOf(descend(definition, 'name')), textOf(descend(definition, 'uuid'))];
    const before = this.domains.get(name);
    const isOther = [...this.domains].some(([of, one]) => (of === name) !== (one.uuid === uuid));
    refuseIf(isOther, 'exists');
    this.domains.set(name, { ...before, uuid, definition });
  }

  #domain(of: string): Domain {
    return this.domains.get(this.#nameOf(of)) as Domain;
  }

  /** Finds a domain by name, UUID or run id. */
  #nameOf(of: string): string {
    const isIt = ([name, { uuid, live }]: [string, Domain]): boolean =>
      [live?.attributes['id'], uuid, name].includes(of);
    const [name] = [...this.domains].find(isIt) ?? [];
    if (name === undefined) throw new VirshError('no_domain', `there is no ${of}`);
    refuseIf(this.silent.has(name), 'late');
    return name;
  }

  #backingOf(name: string): string {
    const { base } = this.#file(name);
    return base === undefined ? '' : `<backingStore><path>${FOLDER}/${base}</path></backingStore>`;
  }

  #file(name: string): MemoryFile {
    const file = this.files.get(name);
    if (file === undefined) throw new VirshError('no_volume', `there is no ${name}`);
    return file;
  }

  #powerOff(name: string): void {
    const domain = this.#domain(name);
    refuseIf(domain.live === undefined, 'not_running');
    delete domain.live;
    delete domain.pause;
  }

  #change(
    name: string,
    places: readonly ('definition' | 'live')[],
    change: (devices: XmlElement['children']) => XmlElement['children'],
  ): void {
    const domain = this.#domain(name);
    for (const place of places) {
      const before = domain[place];
      if (before === undefined) continue;
      const children = before.children.map((child) =>
        typeof child !== 'string' && child.name === 'devices'
          ? element('devices', child.attributes, change(child.children))
          : child,
      );
      domain[place] = { ...before, children };
    }
  }
}

const NAT = libvirtConfigSchema.parse({
  driver: 'libvirt',
  hosts: [{ name: 'h', datacenter: 'fra', public_ip: '192.0.2.1' }],
}).hosts[0]?.network as HostOptions['network'];

function refuseIf(isSo: boolean, problem: VirshProblem): void {
  if (isSo) throw new VirshError(problem, problem);
}

function toBytes(size: string): number {
  const [, number, unit] = /^(\d+)([MB])$/.exec(size) ?? [];
  return Number(number) * (unit === 'M' ? 1024 ** 2 : 1);
}

const pathOf = (device: XmlElement): string | undefined => descend(device, 'source')?.attributes['file'];

function disksOf(domain: XmlElement): { path: string }[] {
  const devices = descend(domain, 'devices')?.children ?? [];
  return devices.flatMap((one) => {
    const path = typeof one === 'string' ? undefined : pathOf(one);
    return path === undefined || (one as XmlElement).name !== 'disk' ? [] : [{ path }];
  });
}

const said = (stdout: string, status = 0) => ({ status, stdout, stderr: '' });

/** A shell that answers with the host's facts and files. */
const shellWithout = (host: MemoryHost): HostShell => ({
  name: host.name,
  run: async (_, [command, , , ...paths]) => {
    switch (command) {
      case 'domains': {
        const names = [...host.domains.keys()].map((name) => `domain\t${name}\n`);
        return host.hasFolders ? said(names.join('')) : said('', 1);
      }
      case 'processes':
        return said(host.alive.has(paths[0] ?? '') ? 'process\t7\n' : '');
      case 'writer':
        return said(`writer\t${writerOf(host, paths)}\n`);
      default:
        return said(`${filesOf(host, command, paths).join('\n')}\n`);
    }
  },
});

function writerOf({ name, isAway, writers }: MemoryHost, [key = '', text]: string[]): string {
  if (isAway) throw new VirshError('unreachable', `${name} is away`);
  if (text !== undefined) writers.set(key, text);
  return writers.get(key) ?? '';
}

function filesOf(
  { files, facts, filesystem, halted }: MemoryHost,
  command: string | undefined,
  paths: string[],
): string[] {
  const there = paths.filter((path) => files.has(path.slice(FOLDER.length + 1)));
  const found = there.map((path) => `exists\t${path}`);
  const { mode, freeGb } = filesystem;
  if (command === 'facts') return [...facts, `filesystem\t${mode}\t/images\t${GIB}\t500\t${freeGb}`];
  if (command !== 'machines') return found;
  const missing = paths.filter((path) => !there.includes(path)).map((path) => `missing\t${path}`);
  const stopped = [...halted].map((name) => `halted\t${name}`);
  return [...stopped, ...found.map((line) => `${line}\t${mode}\t${freeGb * GIB}`), ...missing];
}

/** Runs the host script on the test's own file system, which lacks some programs of a host. */
const shellAt = (shell: HostShell, root: string, files: HostShell): HostShell => ({
  ...shell,
  async run(script, [command = '', , ...rest], ...limits) {
    if (['domains', 'exists', 'machines', 'processes'].includes(command))
      return files.run(script, [command, '', ...rest]);
    const output = await shell.run(script, [command, root, ...rest], ...limits);
    return { ...output, stdout: output.stdout.replaceAll(/^missing\t.*\n/gm, '') };
  },
});
