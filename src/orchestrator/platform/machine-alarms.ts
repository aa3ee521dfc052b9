import type { InstanceStatus } from '../../contract/instance.ts';
import type { AlarmKind } from '../model/alarm.ts';
import type { Endpoint, ObservedMachine } from '../model/platform-driver.ts';
import type { ReconcileContext } from './context.ts';
import type { ExpectedMachine } from './expected-machines.ts';

/** Only instances in these states raise alarms: the machine of any other is about to be removed. */
const WATCHED: ReadonlySet<InstanceStatus> = new Set(['PROVISIONING', 'ONLINE', 'STOPPED']);

const PAUSED =
  'the platform has paused a machine: end the cause. After a minute its instance is STOPPED with its disk, and the ' +
  "tenant's start resumes it. Before that, resume it on the platform; later, that would have it shut down";

const SHARED =
  'two live instances have one address and port: the tenant of one may reach the machine of the other. Correct the endpoints ' +
  'on the platform, or in its driver';

type Context = Pick<ReconcileContext, 'alarms' | 'platform' | 'log' | 'endpoints'>;
type MachineAlarm = 'machine_paused' | 'machine_fault' | 'endpoint_shared';

/**
 * The alarms about machines, from one listing: those that are paused, those that run with a fault, and those that run at
 * one endpoint. An alarm ends with the listing that shows its machines without it.
 */
export class MachineAlarms {
  readonly #context: Context;
  /** What has one after this listing: instances, or endpoints. */
  readonly #subjects: Readonly<Record<MachineAlarm, Set<string>>> = {
    machine_paused: new Set(),
    machine_fault: new Set(),
    endpoint_shared: new Set(),
  };
  /** Which instance was seen at an endpoint first. */
  readonly #idsByEndpoint = new Map<string, string>();

  constructor(context: Context) {
    this.#context = context;
  }

  /** Where a machine is not listed, its alarms stay as they are: its host may not answer. */
  see({ id, status, endpoint }: ExpectedMachine, machine: ObservedMachine | undefined): void {
    if (!WATCHED.has(status)) return;
    if (machine === undefined) {
      this.#subjects.machine_paused.add(id);
      this.#subjects.machine_fault.add(id);
      if (endpoint !== null) this.#subjects.endpoint_shared.add(toSubject(endpoint));
      return;
    }
    const { power, detail, fault } = machine;
    if (power === 'paused') this.#raise('machine_paused', id, PAUSED, detail);
    if (fault !== undefined)
      this.#raise('machine_fault', id, `a machine has a fault: ${fault.remedy}`, fault.finding);
    // What is stopped may keep an address that another has by now.
    if (power === 'running' && status !== 'STOPPED' && machine.endpoint !== undefined)
      this.#seeAt(toSubject(machine.endpoint), id);
  }

  #seeAt(subject: string, id: string): void {
    const { endpoints, platform } = this.#context;
    const first = this.#idsByEndpoint.get(subject);
    if (first === undefined) this.#idsByEndpoint.set(subject, id);
    const other = first ?? endpoints.elsewhere(platform, subject);
    if (other !== undefined) this.#raise('endpoint_shared', subject, SHARED, `${other} and ${id}`);
  }

  /** Ends those of the machines that were not seen with one. */
  close(): void {
    const { alarms, platform, endpoints } = this.#context;
    endpoints.replace(platform, this.#idsByEndpoint);
    for (const [kind, subjects] of Object.entries(this.#subjects))
      alarms.endOthers(kind as AlarmKind, platform, subjects);
  }

  #raise(kind: MachineAlarm, subject: string, text: string, detail?: string): void {
    const { alarms, platform, log } = this.#context;
    this.#subjects[kind].add(subject);
    const fields = { [kind === 'endpoint_shared' ? 'endpoint' : 'instanceId']: subject, detail };
    alarms.raise({ kind, subject, platform, text, fields, ...(detail !== undefined && { detail }) }, log);
  }
}

function toSubject({ publicIp, sshPort }: Pick<Endpoint, 'publicIp' | 'sshPort'>): string {
  return publicIp.includes(':') ? `[${publicIp}]:${sshPort}` : `${publicIp}:${sshPort}`;
}
