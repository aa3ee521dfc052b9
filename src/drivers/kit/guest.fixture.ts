import ssh2 from 'ssh2';
import type { ObservedMachine } from '../../orchestrator/model/platform-driver.ts';
import { runInGuest } from '../../ssh/guest-login.ts';
import { createSshProbe } from '../../ssh/probe.ts';
import type { DriverContext } from './checks/bench.ts';

const newPair = () => ssh2.utils.generateKeyPairSync('ecdsa', { bits: 256 });

/** Two keys for machines, and a guest login that uses the second one. */
export function guestLogin(): { sshKeys: string[]; guest: NonNullable<DriverContext['guest']> } {
  const [first, second] = [newPair(), newPair()];
  const probe = createSshProbe();
  return {
    sshKeys: [first.public, second.public].map((line) => line.trim()),
    guest: {
      findRefusedKey: async (machine, sshKeys) => {
        const result = await probe.probe(targetOf(machine), sshKeys, machine.endpoint?.hostKeyFingerprint);
        return result.ok ? undefined : `${result.step}: ${result.detail}`;
      },
      run: (machine, line) => runInGuest(targetOf(machine), second.private, line),
    },
  };
}

function targetOf({ ref, endpoint }: ObservedMachine) {
  if (endpoint === undefined) throw new Error(`${ref} has no endpoint`);
  return { host: endpoint.publicIp, port: endpoint.sshPort, username: endpoint.sshUsername };
}
