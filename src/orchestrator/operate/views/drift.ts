import { z } from 'zod';
import { counted } from '../../../contract/counted.ts';
import { broken, type Diagnosis, ok, warning } from '../../../ports/diagnosis.ts';
import { eachLiveInstance } from '../../instances/list.ts';
import { disksKeptUntil } from '../../model/destroy-order.ts';
import type { Listing, ObservedMachine } from '../../model/platform-driver.ts';
import { readNote } from '../../model/platform-resource.ts';
import type { InstanceRecord } from '../../model/records.ts';
import type { LiveInstance, Reader } from '../../model/store.ts';

type DriftReader = Pick<Reader, 'instances' | 'work' | 'installation'>;

/** The listing of a platform, and when it was requested. */
interface Listed {
  platform: string;
  otherPlatforms: ReadonlySet<string>;
  listing: Listing<ObservedMachine>;
  askedAt: number;
  /** How long the disks of an instance that ended by itself are kept, in milliseconds: `retention.lost_disks_hours`. */
  keepDisksMs: number;
  driver: { manifest: { stop: boolean } };
}

/** How old a change of a row or a new machine must be before a difference counts as drift, in milliseconds. */
const SETTLED_AFTER_MS = 60_000;
const MOST_TOLD = 100;
const anyNote = z.looseObject({ id: z.string() });

/**
 * Compares the rows of a platform with its listing, for the operator. A server does the same with each listing and
 * repairs what it can. Operations in progress are not drift. Changes nothing.
 */
export async function findDrift(read: DriftReader, listed: Listed): Promise<Diagnosis[]> {
  const { listing } = listed;
  const subject = 'rows against machines';
  if (listing.answer === 'unknown')
    return [broken(subject, `the platform does not list its machines: ${listing.reason}`, MEND_PLATFORM)];
  const silent = new Set(listing.hosts?.silent ?? []);
  const machines = new Map(listing.items.map((machine) => [machine.ref, machine]));
  const found: Diagnosis[] = [...silent].map((host) =>
    warning(`host ${host}`, 'it does not answer: its machines cannot be compared', MEND_HOST),
  );
  const rows = new Set<string>();
  for await (const row of eachLiveInstance(read.instances)) {
    if (row.platform !== listed.platform) continue;
    rows.add(row.ownerRef);
    const isUnseen = row.host !== null && silent.has(row.host);
    if (isUnseen || row.updatedAt > listed.askedAt - SETTLED_AFTER_MS) continue;
    const machine = machines.get(row.ownerRef);
    const trouble = troubleOf(row, machine);
    if (trouble !== undefined) found.push(trouble);
    const drift = trouble === undefined ? compare(row, machine) : undefined;
    if (drift !== undefined && (await read.work.of(row.id)) === null) found.push(drift);
  }
  found.push(...(await withoutRow(read, listed, [...machines.values()], rows)));
  if (found.length === 0)
    return [ok(subject, `${counted(rows.size, 'instance')} and ${counted(machines.size, 'machine')} agree`)];
  const more = found.length - MOST_TOLD;
  if (more <= 0) return found;
  return [
    ...found.slice(0, MOST_TOLD),
    warning(subject, `${more} more differ`, 'Fix what these have in common, then run the check again.'),
  ];
}

const MEND_PLATFORM = 'Fix this problem. Until then no conclusion is drawn about its machines.';
const MEND_HOST = 'Start the host, or fix the connection to it. Meanwhile nothing there counts as lost.';

/** Compares a row with its machine. Undefined if they match. */
function compare(
  { id, status, ownerRef, endpoint }: LiveInstance,
  machine: ObservedMachine | undefined,
): Diagnosis | undefined {
  const subject = `instance ${id}`;
  const retry = `\`berth instances retry ${id} --yes\` reads it again.`;
  const isLive = status === 'ONLINE' || status === 'STOPPED';
  if (isLive && machine === undefined)
    return broken(
      subject,
      `it is ${status}, and the platform does not list its machine ${ownerRef}`,
      `Look for it on the platform. If many are missing, its credentials or its project are probably wrong. ${retry}`,
    );
  if (machine === undefined) return undefined;
  if (status === 'ERROR' || status === 'OFFLINE')
    return broken(
      subject,
      `it is ${status}, and its machine ${ownerRef} is ${machine.power}: it may be costing money`,
      `\`berth instances rm ${id} --yes\` removes it, with its disk.`,
    );
  const wanted = status === 'ONLINE' ? 'running' : 'stopped';
  if (isLive && machine.power !== wanted)
    return warning(subject, `it is ${status}, and its machine ${ownerRef} is ${machine.power}`, retry);
  const { publicIp, sshPort } = machine.endpoint ?? {};
  const isElsewhere =
    publicIp !== undefined && (publicIp !== endpoint?.publicIp || sshPort !== endpoint.sshPort);
  if (status !== 'ONLINE' || !isElsewhere) return undefined;
  return warning(
    subject,
    `its tenant sees ${endpoint?.publicIp}:${endpoint?.sshPort}, but its machine is at ${publicIp}:${sshPort}`,
    retry,
  );
}

/** A problem that the platform reports for a machine with a row. Work on the machine does not fix it. */
function troubleOf(
  { id, status }: LiveInstance,
  machine: ObservedMachine | undefined,
): Diagnosis | undefined {
  if (machine === undefined || (status !== 'ONLINE' && status !== 'STOPPED')) return undefined;
  const subject = `instance ${id}`;
  const { ref, power, detail, fault } = machine;
  if (power === 'paused')
    return broken(
      subject,
      `it is ${status}, and its machine ${ref} is paused: ${detail ?? 'the platform does not say why'}`,
      status === 'ONLINE'
        ? 'Fix the cause and resume it on the platform. After a minute it becomes STOPPED.'
        : "Fix the cause. The tenant's start resumes it. Do not resume it on the platform: Berth would shut it down.",
    );
  return fault && broken(subject, `its machine ${ref} has a fault: ${fault.finding}`, fault.remedy);
}

/** Machines with Berth's tag that no live row owns. Machines of another installation are left out. */
async function withoutRow(
  { instances, installation }: DriftReader,
  { platform, otherPlatforms, askedAt, keepDisksMs, driver }: Listed,
  machines: readonly ObservedMachine[],
  rows: ReadonlySet<string>,
): Promise<Diagnosis[]> {
  const id = (await installation.get())?.id ?? '';
  const unowned = machines.filter(
    ({ ref, createdAt }) => !rows.has(ref) && createdAt <= askedAt - SETTLED_AFTER_MS,
  );
  const found: Diagnosis[] = [];
  for (const machine of unowned.slice(0, MOST_TOLD + 1)) {
    const { owner } = readNote(machine, id, anyNote, otherPlatforms);
    const row: InstanceRecord | null = await instances.byOwnerRef(machine.ref);
    if (owner === 'foreign' || (row !== null && row.platform !== platform)) continue;
    const order = row?.status === 'DESTROYED' ? row.destroyOrder : null;
    const keptUntil = order === null ? 0 : disksKeptUntil(order, { options: { keepDisksMs }, driver });
    found.push(
      keptUntil > askedAt ? toKept(machine, row, keptUntil) : toUnowned(machine, row, owner === 'ours'),
    );
  }
  return found;
}

/** The machine of an instance that ended by itself, while its disks are kept. */
function toKept({ ref, power }: ObservedMachine, row: InstanceRecord | null, until: number): Diagnosis {
  return ok(
    `machine ${ref}`,
    `it is ${power}: after the DELETE of ${row?.id}, its disks are kept until ${new Date(until).toISOString()} (retention.lost_disks_hours)`,
  );
}

function toUnowned({ ref, power }: ObservedMachine, row: InstanceRecord | null, isOurs: boolean): Diagnosis {
  const subject = `machine ${ref}`;
  if (row !== null)
    return broken(
      subject,
      `it is ${power}, and its instance ${row.id} is ${row.status}: it may be costing money`,
      'A running server destroys it again after its next listings. If that fails, see `berth alarms ls`.',
    );
  return isOurs
    ? warning(
        subject,
        `it is ${power}, and its row was lost`,
        `A server restores its row, or \`berth orphans ls\` shows why not: then adopt, release or remove it.`,
      )
    : warning(
        subject,
        `it is ${power}, it has Berth's tag, but no row`,
        'Find out whose it is. If it is not needed, destroy it on the platform.',
      );
}
