import type { HostAnswers, OwnerRef } from '../../orchestrator/model/platform-driver.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Log } from '../../ports/log.ts';
import { DEFAULT_CALL_MS } from '../../work/lease-time.ts';
import type { Asking } from '../kit/asking.ts';
import { createTurns } from '../kit/turns.ts';
import { type Host, openHost } from './client.ts';
import { type Accelerator, type DefinedDomain, readDomainElement, uuidOf } from './domain-xml.ts';
import { hasProblem, isHostFailure, VirshError } from './errors.ts';
import { findKvmProblem } from './hosts/accelerator.ts';
import { DOMAIN_WITHIN_MS, listUuids, observeDomains, silenceOf } from './hosts/domains.ts';
import type { Run } from './hosts/guard.ts';
import type { Capabilities } from './hosts/host-facts.ts';
import { type HostShell, openHostShell, openLogin } from './hosts/host-shell.ts';
import type { MachineMark } from './machine-mark.ts';
import type { LibvirtConfig } from './options.ts';
import { type Pause, readPause } from './trouble.ts';
import { parseXml, type XmlElement } from './xml.ts';

/** Time limit of one host among several; see {@link DEFAULT_CALL_MS}. */
const HOST_WITHIN_MS = (2 * DEFAULT_CALL_MS) / 3;

/** A host with a shell for what libvirt has no call for. */
export interface Member extends Host {
  shell: HostShell;
  /** KVM if it works, determined once, when the first machine is placed there. @throws {VirshError} */
  fastestAccelerator(capabilities: Capabilities): Promise<Accelerator>;
  close(): Promise<void>;
}

export interface FoundMachine {
  host: Member;
  /** True also while it is paused. */
  running: boolean;
  /** Undefined if it does not run. */
  run: Run | undefined;
  /** Undefined if it is not paused. */
  pause: Pause | undefined;
  /** Its stored definition, which the next start uses. */
  domain: DefinedDomain & { mark: MachineMark };
  /** Its running definition; equal to `domain` if it does not run. */
  live: DefinedDomain;
  /** The full XML of `domain`, to define it again with changes. */
  definition: XmlElement;
}

export type Search =
  /** `others`: further hosts with the same domain, such as during a migration. */
  | { answer: 'found'; machine: FoundMachine; others: readonly FoundMachine[]; hosts: HostAnswers }
  | { answer: 'gone'; hosts: HostAnswers }
  /** `hosts`: those that answered do not have it. */
  | { answer: 'unknown'; reason: string; hosts?: HostAnswers };

export interface Fleet {
  hosts: readonly Member[];
  /**
   * Searches for the domain on every host, or on the host `on`. The answer is `gone` only if all of them answered; its
   * files may still exist.
   */
  find(ref: OwnerRef, on?: string): Promise<Search>;
  /** Runs tasks with the same name one at a time, in this process. */
  alone<T>(name: string, task: () => Promise<T>): Promise<T>;
}

export function openFleet(config: LibvirtConfig, log: Log, asking?: Asking): Fleet {
  const members = config.hosts.map((options): Member => {
    const login = openLogin(options, asking);
    const host = openHost(options, login);
    const shell = openHostShell(options, login);
    let chosen: Accelerator | undefined;
    const fastestAccelerator = async (capabilities: Capabilities): Promise<Accelerator> => {
      if (chosen !== undefined) return chosen;
      const finding = await findKvmProblem(shell, { stateDir: options.state_dir }, capabilities);
      if (finding !== undefined)
        log.warn({ host: options.name, finding }, 'guests of this host are emulated, and slow');
      chosen = finding === undefined ? 'kvm' : 'tcg';
      return chosen;
    };
    const close = (): Promise<void> => {
      host.close();
      return login.close();
    };
    return { ...host, shell, fastestAccelerator, close };
  });
  return fleetOf(members);
}

export function fleetOf(hosts: readonly Member[]): Fleet {
  return {
    hosts,
    find: (ref, on) => search(on === undefined ? hosts : hosts.filter(({ name }) => name === on), ref),
    alone: createTurns(),
  };
}

async function search(hosts: readonly Member[], ref: OwnerRef): Promise<Search> {
  const answers = await Promise.allSettled(hosts.map((host) => readMachine(host, ref)));
  const found: FoundMachine[] = [];
  const problems = new Map<string, VirshError>();
  for (const [at, answer] of answers.entries()) {
    if (answer.status === 'fulfilled') {
      if (answer.value !== undefined) found.push(answer.value);
    } else if (answer.reason instanceof VirshError) problems.set(hosts[at]?.name ?? '', answer.reason);
    else throw answer.reason;
  }
  const [machine, ...others] = found.toSorted((a, b) => rankOf(b) - rankOf(a));
  const asked = hostsOf(hosts, problems);
  if (machine !== undefined) return { answer: 'found', machine, others, hosts: asked };
  const [problem] = problems.values();
  if (problem === undefined) return { answer: 'gone', hosts: asked };
  const reason = problem.message;
  if (![...problems.values()].every(isHostFailure)) return { answer: 'unknown', reason };
  return { answer: 'unknown', reason, hosts: asked };
}

/**
 * Limits the time of one host among several, so that a host that hangs or is down does not block the others' answers.
 */
export async function inTime<T>(
  clock: Clock,
  hosts: readonly Pick<Host, 'name'>[],
  { name }: Pick<Host, 'name'>,
  reading: Promise<T>,
): Promise<T> {
  if (hosts.length === 1) return reading;
  const { promise: late, reject } = Promise.withResolvers<never>();
  const problem = new VirshError('unreachable', `${name} did not answer within ${HOST_WITHIN_MS} ms`);
  const timer = clock.setTimer(HOST_WITHIN_MS, () => reject(problem));
  try {
    return await Promise.race([reading, late]);
  } finally {
    timer.cancel();
  }
}

/**
 * Ranks the instances of one domain on several hosts; the highest is the machine: running, then paused, then stopped,
 * then still being made.
 */
export function rankOf(of: { running: boolean; pause?: Pause | undefined; domain: { mark: MachineMark } }) {
  const { memo } = of.domain.mark;
  if (of.running) return of.pause === undefined ? 3 : 2;
  return memo === 'create' || memo === 'boot' ? 0 : 1;
}

/** Divides the hosts by whether they had a problem. */
export function hostsOf(hosts: readonly Host[], problems: ReadonlyMap<string, unknown>): HostAnswers {
  const answered = hosts.map(({ name }) => name).filter((name) => !problems.has(name));
  return { answered, silent: [...problems.keys()] };
}

/**
 * Finds the machine by UUID, which a rename keeps. Undefined if this host does not have it, or it was released.
 *
 * @throws {VirshError}
 */
export async function readMachine(host: Member, ref: OwnerRef): Promise<FoundMachine | undefined> {
  const uuid = uuidOf(ref);
  try {
    const [liveXml, xml] = await Promise.all([
      host.virsh(['dumpxml', '--', uuid], { withinMs: DOMAIN_WITHIN_MS }),
      host.virsh(['dumpxml', '--inactive', '--', uuid], { withinMs: DOMAIN_WITHIN_MS }),
    ]);
    const [running, definition] = [parseXml(liveXml), parseXml(xml)];
    const domain = readDomainElement(definition);
    const { mark, release, name } = domain;
    if (release?.ref === ref) return undefined;
    if (mark?.ref !== ref) throw new VirshError('unmarked', `${host.name} has ${name}, ${UNMARKED}`);
    const id = running.attributes['id'];
    return {
      host,
      running: id !== undefined,
      run: id === undefined ? undefined : { uuid, id },
      pause: id === undefined ? undefined : await readPause(host, uuid),
      domain: { ...domain, mark },
      live: readDomainElement(running),
      definition,
    };
  } catch (error) {
    if (hasProblem(error, 'late')) throw new VirshError('late', silenceOf(host.name, ref));
    if (!(error instanceof VirshError && error.problem === 'no_domain')) throw error;
    if (await hasDomain(host, uuid)) throw new VirshError('busy', error.message);
    return undefined;
  }
}

/**
 * Reads a machine again on the host that had it.
 *
 * @throws {VirshError} `no_domain` if it has left the host since, such as to another one
 */
export async function rereadMachine(host: Member, ref: OwnerRef): Promise<FoundMachine> {
  const machine = await readMachine(host, ref);
  if (machine === undefined) throw new VirshError('no_domain', `${ref} is gone from ${host.name}`);
  return machine;
}

export const UNMARKED = "whose UUID is one of Berth's, but without Berth's metadata";

/**
 * Whether the domain is Berth's, because its UUID follows from its name, but has no mark. Nothing may be done with such
 * a domain.
 */
export function isUnmarked({ name, uuid, mark, release }: DefinedDomain): boolean {
  return mark === undefined && release === undefined && uuid === uuidOf(name);
}

async function hasDomain(host: Member, uuid: string): Promise<boolean> {
  try {
    return (await listUuids(host, '--all')).includes(uuid);
  } catch (error) {
    if (!hasProblem(error, 'late')) throw error;
    return (await observeDomains(host, host.shell)).some((domain) => domain.uuid === uuid);
  }
}
