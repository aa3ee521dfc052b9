import type { InstanceStatus } from '../../contract/instance.ts';
import type { AlarmKind } from '../model/alarm.ts';
import type { Endpoint, ObservedMachine } from '../model/platform-driver.ts';
import type { ReconcileContext } from './context.ts';
import type { ExpectedMachine } from './expected-machines.ts';

/** Instances in these states raise alarms. The machine of any other is about to be removed. */
const WATCHED: ReadonlySet<InstanceStatus> = new Set(['PROVISIONING', 'ONLINE', 'STOPPED']);

const PAUSED =
  'the platform has paused a machine: fix the cause. After a minute its instance is STOPPED with its disk, and the ' +
  "tenant's start resumes it. Before that, resume it on the platform; afterwards, Berth would shut it down";

const SHARED =
  'two live instances share an address and port: the tenant of one may reach the machine of the other. Correct the endpoints ' +
  'on the platform, or in its driver';

type Context = Pick<ReconcileContext, 'alarms' | 'platform' | 'log' | 'endpoints'>;
type MachineAlarm = 'machine_paused' | 'machine_fault' | 'endpoint_shared';

/**
 * The alarms of one listing: machines that are paused, that run with a fault, or that share an endpoint. An alarm ends
 * with the first listing that shows its machines without the problem.
 */
export class MachineAlarms {
  readonly #context: Context;
  /** The instances or endpoints with an alarm after this listing. */
  readonly #subjects: Readonly<Record<MachineAlarm, Set<string>>> = {
    machine_paused: new Set(),
    machine_fault: new Set(),
    endpoint_shared: new Set(),
  };
  /** The first instance seen at each endpoint. */
  readonly #idsByEndpoint = new Map<string, string>();

  constructor(context: Context) {
    this.#context = context;
  }

  /** Adds a machine of the listing. If the machine is not listed, its alarms do not change: its host may be silent. */
  see({ id, status, endpoint }: ExpectedMachine, machine: ObservedMachine | undefined): void {
    // A machine that the platform does not answer about cannot be removed either.
    if (!WATCHED.has(status) && machine?.isLastKnown !== true) return;
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
    // A stopped machine may keep an address that another machine has now.
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

  /** Ends the alarms that this listing did not confirm. */
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
    alarms.raise({ kind, subject, platform, text, fields, detail }, log);
  }
}

function toSubject({ publicIp, sshPort }: Pick<Endpoint, 'publicIp' | 'sshPort'>): string {
  return publicIp.includes(':') ? `[${publicIp}]:${sshPort}` : `${publicIp}:${sshPort}`;
}
