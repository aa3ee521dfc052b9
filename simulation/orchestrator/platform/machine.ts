import type {
  Endpoint,
  MachineSpec,
  ObservedMachine,
  Power,
} from '../../../src/orchestrator/model/platform-driver.ts';

/** The true state of a machine, whatever the platform shows. Times are virtual milliseconds. */
export interface Machine {
  serial: number;
  spec: MachineSpec;
  createdAt: number;
  /** When gets and listings begin to show it. */
  visibleAt: number;
  power: Power;
  /** When a transitional state ends; infinite where it does not end by itself. */
  until: number;
  becomes: Power | 'removed';
  ip: string | null;
  /** The address that the platform still shows after a start, until `staleUntil`. */
  staleIp: string | null;
  staleUntil: number;
  hostKey: string;
  sshReadyAt: number;
  /** The last restart that was begun. */
  restartId: string | null;
  diskId: string;
  holdsUnit: boolean;
}

export const SSH_PORT = 22;
const SSH_USERNAME = 'ubuntu';

/** The traits of the platform that change what is shown of a machine. */
export interface Showing {
  keepsNotes: boolean;
  tellsHostKeys: boolean;
}

/** The machine as the platform shows it. */
export function show(machine: Machine, now: number, { keepsNotes, tellsHostKeys }: Showing): ObservedMachine {
  const { spec, power, createdAt, hostKey } = machine;
  const ip = now < machine.staleUntil ? machine.staleIp : machine.ip;
  const endpoint: Endpoint | undefined =
    ip === null || power === 'building'
      ? undefined
      : {
          publicIp: ip,
          sshPort: SSH_PORT,
          sshUsername: SSH_USERNAME,
          ...(tellsHostKeys && { hostKeyFingerprint: hostKey }),
        };
  return {
    ref: spec.ref,
    power,
    createdAt,
    ...(endpoint !== undefined && { endpoint }),
    ...(power === 'failed' && { detail: 'the board reports a fault' }),
    ...(keepsNotes && { note: spec.note }),
  };
}
