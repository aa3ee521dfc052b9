import type {
  Endpoint,
  MachineSpec,
  ObservedMachine,
  Power,
} from '../../../src/orchestrator/model/platform-driver.ts';

/** A machine as it is, whatever the platform says of it. Times are virtual milliseconds. */
export interface Machine {
  serial: number;
  spec: MachineSpec;
  createdAt: number;
  /** From when on looks and listings show it. */
  visibleAt: number;
  power: Power;
  /** When a passing state is over; infinite where it passes by itself never. */
  until: number;
  becomes: Power | 'removed';
  ip: string | null;
  /** What the platform goes on telling after a start, until `staleUntil`. */
  staleIp: string | null;
  staleUntil: number;
  hostKey: string;
  sshReadyAt: number;
  /** The last restart that was carried out, or is. */
  restartId: string | null;
  diskId: string;
  holdsUnit: boolean;
}

export const SSH_PORT = 22;
const SSH_USERNAME = 'ubuntu';

/** Which traits of the platform change what is shown of a machine. */
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
