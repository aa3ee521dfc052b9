import { z } from 'zod';
import type { HostAnswers, ObservedVolume, OwnerRef } from '../../orchestrator/model/platform-driver.ts';
import { type HostDomain, isMachine } from './domain-xml.ts';
import { hasProblem, isHostFailure, VirshError } from './errors.ts';
import { hostsOf, type Member } from './fleet.ts';
import { listDomains } from './hosts/domains.ts';
import { listKnownFiles } from './pool.ts';
import { childrenOf, descend, parseXml, textOf } from './xml.ts';

const GIB = 1024 ** 3;

/** A volume consists of two files: the disk and the mark. A disk without a mark is not Berth's. */
export const diskFile = (ref: OwnerRef): string => `${ref}.volume`;
export const markFile = (ref: OwnerRef): string => `${ref}.mark`;
export const VOLUME_FILE = /^([a-z0-9][a-z0-9-]*)\.(volume|mark)$/;

const markSchema = z.object({
  createdBy: z.literal('berth'),
  ref: z.string(),
  createdAt: z.number(),
  note: z.string(),
});
export type VolumeMark = z.infer<typeof markSchema>;

export interface FoundVolume {
  host: Member;
  path: string;
  sizeGb: number;
  /** What the file takes of the pool. Undefined if libvirt does not say. */
  usedBytes: number | undefined;
  domains: readonly HostDomain[];
  observed: ObservedVolume;
}

/** The volumes on a host. `loose`: files whose counterpart is missing. */
interface HostVolumes {
  host: Member;
  volumes: readonly FoundVolume[];
  loose: readonly { ref: OwnerRef; name: string }[];
}

export interface VolumeSearch {
  found: readonly HostVolumes[];
  hosts: HostAnswers;
  reason: string | undefined;
}

export class VolumeReader {
  readonly #hosts: readonly Member[];
  /** A mark never changes, so it is read once. */
  readonly #marks = new Map<string, VolumeMark>();

  constructor(hosts: readonly Member[]) {
    this.#hosts = hosts;
  }

  async listHost(host: Member): Promise<HostVolumes> {
    const { virsh, options } = host;
    const names = await listKnownFiles(host);
    const files = names.flatMap((name) => {
      const [, ref] = VOLUME_FILE.exec(name) ?? [];
      return ref === undefined ? [] : [{ ref, name }];
    });
    const refs = files
      .filter(({ ref, name }) => name === diskFile(ref) && names.includes(markFile(ref)))
      .map(({ ref }) => ref);
    const loose = files.filter(({ ref }) => !refs.includes(ref));
    if (refs.length === 0) return { host, volumes: [], loose };
    const commands = refs.map((ref) => `vol-dumpxml --pool ${options.pool} ${diskFile(ref)}`);
    const [domains, text] = await Promise.all([
      listDomains(host),
      virsh([[...commands, 'hostname'].join('; ')]),
    ]);
    const [, documents = ''] = /^([\s\S]*<\/volume>)?/.exec(text) ?? [];
    const volumes = childrenOf(parseXml(`<volumes>${documents}</volumes>`));
    const listed = volumes.map((volume) => textOf(descend(volume, 'name')).slice(0, -'.volume'.length));
    const unlisted = refs.filter((ref) => !listed.includes(ref)).map(diskFile);
    // A volume that is missing from the output would be made again or reported as gone.
    const still =
      unlisted.length === 0 ? [] : (await listKnownFiles(host)).filter((name) => unlisted.includes(name));
    if (still.length > 0) throw new VirshError('busy', `${host.name} did not list ${still[0]}`);
    const found: FoundVolume[] = [];
    for (const [index, volume] of volumes.entries()) {
      const ref = listed[index] ?? '';
      const mark = await this.readMark(host, ref);
      if (mark === undefined) {
        loose.push({ ref, name: diskFile(ref) });
        continue;
      }
      const path = textOf(descend(volume, 'target', 'path'));
      const sizeGb = Number(textOf(descend(volume, 'capacity'))) / GIB;
      const allocation = textOf(descend(volume, 'allocation'));
      const usedBytes = allocation === '' ? undefined : Number(allocation);
      const attachedTo = domains
        .filter((domain) => isMachine(domain) && domain.disks.some((disk) => disk.path === path))
        .map(({ mark: own, name }) => own?.ref ?? name);
      const { createdAt, note } = mark;
      const observed = { ref, attachedTo, createdAt, sizeGb, host: host.name, note };
      found.push({ host, path, sizeGb, usedBytes, domains, observed });
    }
    return { host, volumes: found, loose };
  }

  async readMark(host: Member, ref: OwnerRef): Promise<VolumeMark | undefined> {
    const key = `${host.name}/${ref}`;
    const known = this.#marks.get(key);
    if (known !== undefined) return known;
    const { virshBytes, options } = host;
    try {
      const bytes = await virshBytes(['vol-download', '--pool', options.pool, markFile(ref), '/dev/stdout']);
      const mark = markSchema.parse(JSON.parse(bytes.toString('utf8')));
      if (mark.ref !== ref) return undefined;
      this.#marks.set(key, mark);
      return mark;
    } catch (error) {
      // The mark does not exist or is incomplete.
      const isNone = error instanceof VirshError && error.problem === 'no_volume';
      if (isNone || error instanceof SyntaxError || error instanceof z.ZodError) return undefined;
      throw error;
    }
  }

  /** @throws {VirshError} if a host that answers gives an incomplete answer */
  async searchAll(): Promise<VolumeSearch> {
    const answers = await Promise.allSettled(this.#hosts.map((host) => this.listHost(host)));
    const found: HostVolumes[] = [];
    const problems = new Map<string, string>();
    for (const [index, answer] of answers.entries()) {
      if (answer.status === 'fulfilled') found.push(answer.value);
      else if (answer.reason instanceof VirshError && isOfHost(answer.reason))
        problems.set(this.#hosts[index]?.name ?? '', answer.reason.message);
      else throw answer.reason;
    }
    return { found, hosts: hostsOf(this.#hosts, problems), reason: [...problems.values()][0] };
  }

  /** Drops the mark of a volume that is being removed. */
  forget(host: Member, ref: OwnerRef): void {
    this.#marks.delete(`${host.name}/${ref}`);
  }
}

export const volumesIn = ({ found }: Pick<VolumeSearch, 'found'>): FoundVolume[] =>
  found.flatMap(({ volumes }) => volumes);

const isOfHost = (problem: VirshError): boolean =>
  isHostFailure(problem) || hasProblem(problem, 'no_pool', 'late');
